"""Objects that mind being looked at: properties, comparisons and proxies that raise or count."""

looked = []


class Touchy:
    def __init__(self, number):
        self.number = number

    @property
    def __class__(self):
        looked.append("class")
        return Touchy

    def __getattr__(self, name):
        looked.append(name)
        raise AttributeError(name)

    def __len__(self):
        looked.append("len")
        return 3

    def __bool__(self):
        raise RuntimeError("not for a condition")

    def __eq__(self, other):
        raise RuntimeError("not for comparison")

    def __hash__(self):
        raise RuntimeError("not for a dictionary")

    def __repr__(self):
        raise RuntimeError("not for print")

    def __iter__(self):
        raise RuntimeError("not for iteration")

    def __sizeof__(self):
        looked.append("sizeof")
        return 10**9


class Bag(dict):
    def __missing__(self, key):
        looked.append("missing")
        return 0

    def items(self):
        looked.append("items")
        return super().items()

    def __iter__(self):
        looked.append("iter")
        return super().__iter__()


kept, bag = [], Bag()
for step in range(900):
    kept.append(Touchy(step))
    dict.__setitem__(bag, step, [step] * 20)
print(looked)
