curl {{ address }}/v1/analytics/{{ project }}/hits \
  -H "Authorization: Bearer $READERSHIP_KEY" -H "Content-Type: application/json" \
  -d '{"path": "/readership-test", "userAgent": "Mozilla/5.0 (compatible; GPTBot/1.3; +https://openai.com/gptbot)"}'
