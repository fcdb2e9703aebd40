class Node:
    def __init__(self):
        self.me = self
        self.payload = bytearray(600)


total = 0
number = 0
while True:
    number += 1
    total += len(Node().payload)
    if number == 4000:
        break
print(total)
