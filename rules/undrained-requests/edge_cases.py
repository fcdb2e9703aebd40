class Collected:
    """Whoever asked takes the request out."""

    def add_request(self, request_id, prompt):
        self.requests[request_id] = prompt
        self.running[request_id] = True

    def finish_request(self, request_id):
        del self.running[request_id]
        self.collect(request_id)

    def collect(self, request_id):
        return self.requests.pop(request_id)


class Aborted:
    def __init__(self):
        self.requests = {}

    def add_request(self, request_id, prompt):
        self.requests[request_id] = prompt  # leak: undrained-requests
        self.running[request_id] = True
        self.slots[request_id] = 1

    def abort_request(self, request_id):
        self.running.pop(request_id, None)
        self.slots.pop(request_id, None)

    def shutdown(self):
        self.requests.clear()
