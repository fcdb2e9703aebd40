"""Near misses are unmarked."""


class Engine:
    def run(self, loader):
        for batch in loader:
            self.state.output = self.process(self, batch)  # leak: previous-output-overlap

    def run_with_room(self, loader):
        for batch in loader:
            self.state.output = None
            self.state.output = self.process(self, batch)

    def note(self, loader):
        for batch in loader:
            self.state.output = self.name()


class Labels:
    def update_labels(self, texts):
        self.embeddings = self.embed(texts)  # leak: previous-output-overlap

    def refresh_labels(self, texts):
        self.embeddings = None
        self.embeddings = self.embed(texts)

    def update_by_step(self, step):
        self.embeddings = self.blend(self.embeddings, step)

    def read(self, path):
        self.embeddings = self.load(path)
