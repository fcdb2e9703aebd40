import json

cache = {}
total = 0
for number in range(3000):
    text = json.dumps({"n": number, "squares": [k * k for k in range(20)]})
    total += len(text)
    cache[number % 64] = text
print(total)
