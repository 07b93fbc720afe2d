npx wrangler secret put READERSHIP_KEY
npx wrangler deploy
