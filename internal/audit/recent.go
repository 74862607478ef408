package audit

// recent knows at least the last max keys it was given, and at most twice as many.
type recent struct {
	max        int
	young, old map[string]struct{}
}

func (r *recent) add(key string) {
	if r.young == nil {
		r.young = map[string]struct{}{}
	}
	if r.young[key] = struct{}{}; len(r.young) >= r.max {
		r.old, r.young = r.young, nil
	}
}

func (r *recent) has(key string) bool {
	if _, ok := r.young[key]; ok {
		return true
	}
	_, ok := r.old[key]
	return ok
}
