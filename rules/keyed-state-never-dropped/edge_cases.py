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


class Filters:
    def __init__(self, rate):
        self.rate = rate
        self.filter_cache = {}
        self.window_cache = {}
        self.voice_cache = {}
        self.image_cache = {}
        self.lengths = {}
        self.learning_rate = {}
        self.schedules = {}

    def smooth(self, audio):
        cutoff = 1000.0
        return self.low_pass(audio, cutoff), self.windowed(audio, len(audio))

    def low_pass(self, audio, cutoff, order=5):
        cache_key = (cutoff, self.rate, order)
        if cache_key not in self.filter_cache:
            self.filter_cache[cache_key] = design(cutoff, order)  # always the same
        return self.filter_cache[cache_key](audio)

    def windowed(self, audio, size, order=5):
        cache_key = (size, self.rate, order)
        if cache_key not in self.window_cache:
            self.window_cache[cache_key] = design(size, order)  # leak: keyed-state-never-dropped
        return self.window_cache[cache_key](audio)

    def speak(self, text, lang_key, image_key, request_id):
        self.voice_cache[lang_key] = design(lang_key)  # one for each language
        self.image_cache[image_key] = design(text)  # leak: keyed-state-never-dropped
        length = len(text)
        self.lengths[request_id] = length
        self.learning_rate[request_id] = self.schedule(text)  # a number each
        self.schedules[request_id] = self.schedule(text)  # leak: keyed-state-never-dropped


class Planner:
    """Made for each call of the scheduler, and gone with it."""

    def __init__(self):
        self.plans = {}

    def plan(self, request_id, request):
        self.plans[request_id] = [request]
        return self.plans


class Keeper:
    def __init__(self):
        self.plans = {}

    def plan(self, request_id, request):
        self.plans[request_id] = [request]  # leak: keyed-state-never-dropped
        return self.plans.get(request_id)


class Scheduler:
    def __init__(self):
        self.keeper = Keeper()

    def schedule(self, requests):
        for request in requests:
            self.keeper.plan(request.id, request)
        return Planner().plan(requests[0].id, requests)


class Lines:
    def __init__(self, plots):
        self.lines_cache = []
        for _ in plots:
            self.lines_cache.append(None)

    def draw(self, item_key, line):
        self.lines_cache[item_key] = line  # a place that is there already
        return self.lines_cache[item_key]


class FilledAsItIsMade:
    def __init__(self, url):
        self._tables = {}
        self.table = self._table_of(url)

    def _table_of(self, url):
        if url not in self._tables:
            self._tables[url] = torch.load(url)
        return self._tables[url]


class FilledByWhoeverAsks:
    def __init__(self):
        self._images = {}

    def image_of(self, url):
        if url not in self._images:
            self._images[url] = torch.load(url)  # leak: keyed-state-never-dropped
        return self._images[url]
