"""Near misses are unmarked."""


class Tracker:
    def __init__(self):
        self.kept = {}
        self.seen_cache = {}
        self.dropped = {}
        self.measured = {}
        self.by_layer = {}
        self.counts = {}
        self.anew = {}
        self.shared = {}

    def update(self, track_id, key, layer_id, state):
        self.kept[track_id] = state  # leak: keyed-state-never-dropped
        self.seen_cache[key] = state  # leak: keyed-state-never-dropped
        self.dropped[track_id] = state
        self.measured[track_id] = state
        self.by_layer[layer_id] = state
        self.counts[track_id] += 1
        self.anew[track_id] = {}
        if len(self.measured) > 9:
            self.measured = {}
        return self.kept.get(track_id), self.seen_cache.get(key)

    def forget(self, track_id):
        del self.dropped[track_id]

    def add_video(self, video_id, state):
        self.shared[video_id] = state


class Another:
    def __init__(self):
        self.kept = {}

    def drop(self, track_id):
        self.kept.pop(track_id)
