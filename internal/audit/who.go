package audit

import "github.com/pipeguard/pipeguard/internal/core/caller"

// WhoOf is how records name a caller.
func WhoOf(c caller.Caller) *Who {
	w := &Who{Assurance: string(c.Assurance), Token: c.Token, Host: c.IsHost, Doubt: c.Doubt}
	if c.Process != (caller.Process{}) {
		w.Process = &WhoProcess{PID: c.Process.PID, Start: c.Process.Start.UTC(), Exe: c.Process.Exe}
	}
	if c.User != (caller.User{}) {
		w.User = &WhoUser{SID: c.User.SID, Name: c.User.Name}
	}
	if c.Pod != (caller.Pod{}) {
		w.Pod = &WhoPod{Namespace: c.Pod.Namespace, Name: c.Pod.Name, UID: c.Pod.UID, ServiceAccount: c.Pod.ServiceAccount}
	}
	if c.Container != (caller.Container{}) {
		w.Container = &WhoContainer{ID: c.Container.ID, Name: c.Container.Name, Image: c.Container.Image, HostProcess: c.Container.HostProcess}
	}
	return w
}

// Caller is the caller that a record names; the zero value of nil.
func (w *Who) Caller() caller.Caller {
	if w == nil {
		return caller.Caller{}
	}
	c := caller.Caller{Assurance: caller.Assurance(w.Assurance), Token: w.Token, IsHost: w.Host, Doubt: w.Doubt}
	if p := w.Process; p != nil {
		c.Process = caller.Process{PID: p.PID, Start: p.Start, Exe: p.Exe}
	}
	if u := w.User; u != nil {
		c.User = caller.User{SID: u.SID, Name: u.Name}
	}
	if p := w.Pod; p != nil {
		c.Pod = caller.Pod{Namespace: p.Namespace, Name: p.Name, UID: p.UID, ServiceAccount: p.ServiceAccount}
	}
	if k := w.Container; k != nil {
		c.Container = caller.Container{ID: k.ID, Name: k.Name, Image: k.Image, HostProcess: k.HostProcess}
	}
	return c
}
