curl {{ address }}/v1/analytics/{{ project }}/hits \
  -H "Authorization: Bearer $READERSHIP_KEY" -H "Content-Type: application/json" \
  -d '{
    "url": "https://example.com/readership-test",
    "userAgent": "Mozilla/5.0 (compatible; GPTBot/1.3; +https://openai.com/gptbot)",
    "address": "20.171.206.5",
    "accept": "*/*",
    "headers": {"accept-language": "en"},
    "status": 200, "bytes": 5120, "durationMs": 12
  }'
