package nodes

// fault is what keeps a part from its work, "" if nothing does. A part that tries again all the time logs one that lasts once.
type fault string

// isNews takes the outcome of an attempt, and reports whether it is another than that of the attempt before. The first is compared with
// success.
func (f *fault) isNews(err error) bool {
	was := *f
	*f = ""
	if err != nil {
		*f = fault(err.Error())
	}
	return *f != was
}
