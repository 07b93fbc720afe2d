npx vercel env add READERSHIP_KEY production
npx vercel deploy --prod
