package audit

// appendEvent writes an event with its fields in their order. Params must be valid JSON.
func appendEvent(out []byte, e *Event) []byte {
	l := &line{out: out}
	l.open()
	l.number("v", int64(e.V))
	l.count("seq", e.Seq)
	l.text("type", string(e.Type))
	l.text("stage", string(e.Stage))
	l.time("time", e.Time)
	l.text("session", e.Session)
	l.text("id", e.ID)
	if e.IntentSeq != 0 {
		l.count("intent_seq", e.IntentSeq)
	}
	l.yes("again", e.Again)
	l.log(e.Log)
	l.who(e.Who)
	l.what(e.What)
	l.decision(e.Decision)
	l.outcome(e.Outcome)
	if c := e.Corr; c != nil {
		l.key("corr")
		l.open()
		l.some("conn", c.Conn)
		l.some("admission_uid", c.AdmissionUID)
		l.close()
	}
	if w := e.Where; w != nil {
		l.key("where")
		l.open()
		l.some("node", w.Node)
		l.close()
	}
	l.some("prev", e.Prev)
	l.close()
	return l.out
}

func (l *line) log(g *Log) {
	if g == nil {
		return
	}
	l.key("log")
	l.open()
	l.some("previous_session", g.PreviousSession)
	if g.PreviousSeq != 0 {
		l.count("previous_seq", g.PreviousSeq)
	}
	if g.TornBytes != 0 {
		l.number("torn_bytes", int64(g.TornBytes))
	}
	l.some("previous_segment", g.PreviousSegment)
	if g.PreviousBytes != 0 {
		l.number("previous_bytes", g.PreviousBytes)
	}
	l.some("previous_torn_hash", g.PreviousTornHash)
	l.texts("void", g.Void)
	l.texts("void_held", g.VoidHeld)
	l.some("cause", g.Cause)
	l.some("fault", g.Fault)
	if g.Orphaned != 0 {
		l.number("orphaned", int64(g.Orphaned))
	}
	if g.OldestOpen != 0 {
		l.count("oldest_open", g.OldestOpen)
	}
	if g.Lost != 0 {
		l.count("lost", g.Lost)
	}
	if g.Unwritten != 0 {
		l.count("unwritten", g.Unwritten)
	}
	if g.Unsigned != 0 {
		l.count("unsigned", g.Unsigned)
	}
	l.yes("unreserved", g.Unreserved)
	if p := g.Pruned; p != nil {
		l.key("pruned")
		l.open()
		l.list("segments", p.Segments)
		l.count("first_seq", p.FirstSeq)
		l.count("last_seq", p.LastSeq)
		l.count("tree_size", p.TreeSize)
		l.some("root", p.Root)
		l.text("reason", p.Reason)
		l.close()
	}
	l.some("note", g.Note)
	l.some("segment", g.Segment)
	l.close()
}

func (l *line) who(w *Who) {
	if w == nil {
		return
	}
	l.key("who")
	l.open()
	l.text("assurance", w.Assurance)
	if p := w.Process; p != nil {
		l.key("process")
		l.open()
		l.count("pid", uint64(p.PID))
		if !p.Start.IsZero() {
			l.time("start", p.Start)
		}
		l.some("exe", p.Exe)
		l.close()
	}
	if u := w.User; u != nil {
		l.key("user")
		l.open()
		l.some("sid", u.SID)
		l.some("name", u.Name)
		l.texts("groups", u.Groups)
		l.close()
	}
	if p := w.Pod; p != nil {
		l.key("pod")
		l.open()
		l.some("ns", p.Namespace)
		l.some("name", p.Name)
		l.some("uid", p.UID)
		l.some("sa", p.ServiceAccount)
		l.close()
	}
	if c := w.Container; c != nil {
		l.key("container")
		l.open()
		l.text("id", c.ID)
		l.some("name", c.Name)
		l.some("image", c.Image)
		l.yes("host_process", c.HostProcess)
		l.close()
	}
	l.yes("token", w.Token)
	l.some("token_id", w.TokenID)
	l.some("token_state", w.TokenState)
	l.yes("host", w.Host)
	l.some("doubt", w.Doubt)
	l.close()
}

func (l *line) what(w *What) {
	if w == nil {
		return
	}
	l.key("what")
	l.open()
	l.some("pipe", w.Pipe)
	l.some("group", w.Group)
	l.some("version", w.Version)
	l.some("method", w.Method)
	l.some("full_method", w.FullMethod)
	l.some("verb", w.Verb)
	l.json("params", w.Params)
	l.texts("redacted", w.Redacted)
	if len(w.Targets) > 0 {
		l.key("targets")
		l.out = append(l.out, '[')
		for i, t := range w.Targets {
			if i > 0 {
				l.out = append(l.out, ',')
			}
			l.open()
			l.text("kind", t.Kind)
			l.text("value", t.Value)
			l.some("canonical", t.Canonical)
			l.close()
		}
		l.out = append(l.out, ']')
	}
	if w.MoreTargets != 0 {
		l.number("more_targets", int64(w.MoreTargets))
	}
	l.close()
}

func (l *line) decision(d *Decision) {
	if d == nil {
		return
	}
	l.key("decision")
	l.open()
	l.text("effect", string(d.Effect))
	l.text("reason", d.Reason)
	l.some("rule", d.Rule)
	if p := d.Policy; p != nil {
		l.key("policy")
		l.open()
		l.some("name", p.Name)
		l.text("rev", p.Revision)
		if p.Bundle != 0 {
			l.count("bundle", p.Bundle)
		}
		l.close()
	}
	l.some("mode", d.Mode)
	l.texts("permits", d.Permits)
	l.close()
}

func (l *line) outcome(o *Outcome) {
	if o == nil {
		return
	}
	l.key("outcome")
	l.open()
	l.text("result", o.Result)
	l.text("code", o.Code)
	l.some("error", o.Error)
	if o.Count != 0 {
		l.count("count", o.Count)
	}
	if !o.First.IsZero() {
		l.time("first", o.First)
	}
	l.number("latency_us", o.LatencyUS)
	l.yes("caller_left", o.CallerLeft)
	l.close()
}
