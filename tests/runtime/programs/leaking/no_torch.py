"""A plain script that has never heard of torch."""

# kind = "object"
# holder = "global `pages`"



pages = []
for number in range(2000):
    pages.append([number] * 200)  # leak
    total = sum(pages[-1])
print(total)
