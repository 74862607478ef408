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
	l.counted("intent_seq", e.IntentSeq)
	l.yes("again", e.Again)
	l.log(e.Log)
	l.who(e.Who)
	l.what(e.What)
	l.decision(e.Decision)
	l.outcome(e.Outcome)
	if c := e.Corr; l.object("corr", c != nil) {
		l.some("conn", c.Conn)
		l.some("admission_uid", c.AdmissionUID)
		l.close()
	}
	if w := e.Where; l.object("where", w != nil) {
		l.some("node", w.Node)
		l.close()
	}
	l.some("prev", e.Prev)
	l.close()
	return l.out
}

func (l *line) log(g *Log) {
	if !l.object("log", g != nil) {
		return
	}
	l.some("previous_session", g.PreviousSession)
	l.counted("previous_seq", g.PreviousSeq)
	l.numbered("torn_bytes", int64(g.TornBytes))
	l.some("previous_segment", g.PreviousSegment)
	l.numbered("previous_bytes", g.PreviousBytes)
	l.some("previous_torn_hash", g.PreviousTornHash)
	l.texts("void", g.Void)
	l.texts("void_held", g.VoidHeld)
	l.some("cause", g.Cause)
	l.some("fault", g.Fault)
	l.numbered("orphaned", int64(g.Orphaned))
	l.counted("oldest_open", g.OldestOpen)
	l.counted("lost", g.Lost)
	l.counted("unwritten", g.Unwritten)
	l.counted("unsigned", g.Unsigned)
	l.yes("unreserved", g.Unreserved)
	if p := g.Pruned; l.object("pruned", p != nil) {
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
	if !l.object("who", w != nil) {
		return
	}
	l.text("assurance", w.Assurance)
	if p := w.Process; l.object("process", p != nil) {
		l.count("pid", uint64(p.PID))
		l.timed("start", p.Start)
		l.some("exe", p.Exe)
		l.close()
	}
	if u := w.User; l.object("user", u != nil) {
		l.some("sid", u.SID)
		l.some("name", u.Name)
		l.texts("groups", u.Groups)
		l.close()
	}
	if p := w.Pod; l.object("pod", p != nil) {
		l.some("ns", p.Namespace)
		l.some("name", p.Name)
		l.some("uid", p.UID)
		l.some("sa", p.ServiceAccount)
		l.close()
	}
	if c := w.Container; l.object("container", c != nil) {
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
	if !l.object("what", w != nil) {
		return
	}
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
		array(l, w.Targets, func(l *line, t Target) {
			l.open()
			l.text("kind", t.Kind)
			l.text("value", t.Value)
			l.some("canonical", t.Canonical)
			l.close()
		})
	}
	l.numbered("more_targets", int64(w.MoreTargets))
	l.close()
}

func (l *line) decision(d *Decision) {
	if !l.object("decision", d != nil) {
		return
	}
	l.text("effect", string(d.Effect))
	l.text("reason", d.Reason)
	l.some("rule", d.Rule)
	if p := d.Policy; l.object("policy", p != nil) {
		l.some("name", p.Name)
		l.text("rev", p.Revision)
		l.counted("bundle", p.Bundle)
		l.close()
	}
	l.some("mode", d.Mode)
	l.texts("permits", d.Permits)
	l.close()
}

func (l *line) outcome(o *Outcome) {
	if !l.object("outcome", o != nil) {
		return
	}
	l.text("result", o.Result)
	l.text("code", o.Code)
	l.some("error", o.Error)
	l.counted("count", o.Count)
	l.timed("first", o.First)
	l.number("latency_us", o.LatencyUS)
	l.yes("caller_left", o.CallerLeft)
	l.close()
}
