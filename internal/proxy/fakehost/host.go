package fakehost

import (
	"context"
	"slices"
	"strings"
	"sync"

	"github.com/pipeguard/pipeguard/internal/proxy/handler"
)

// Host is a node in memory. Any number of goroutines may use it.
type Host struct {
	options Options

	mu       sync.Mutex // guards everything below
	drives   map[byte]*node
	disks    map[uint32]*disk             // that the host sees
	volumes  map[handler.VolumeID]*volume // of those disks and of disks that it has seen
	services map[string]*service          // by folded name
	shares   map[handler.Share]*share
	network  []*portal
	mutual   string // CHAP secret by which targets prove themselves
	ledger   []Entry
	touched  []string // services that the operation in hand has started or stopped
}

var (
	_ handler.Disk       = (*Host)(nil)
	_ handler.Filesystem = (*Host)(nil)
	_ handler.SMB        = (*Host)(nil)
	_ handler.Mapper     = (*Host)(nil)
	_ handler.ISCSI      = (*Host)(nil)
	_ handler.Volume     = (*Host)(nil)
	_ handler.System     = (*Host)(nil)
)

// New returns a host as the options describe it.
func New(o Options) *Host {
	o = o.withDefaults()
	h := &Host{
		options:  o,
		drives:   map[byte]*node{},
		disks:    map[uint32]*disk{},
		volumes:  map[handler.VolumeID]*volume{},
		shares:   map[handler.Share]*share{},
		services: map[string]*service{},
	}
	for _, d := range o.Disks {
		h.attach(newDisk(d))
	}
	for _, s := range o.Shares {
		h.shares[s.Name] = &share{Share: s}
	}
	for _, p := range o.Portals {
		h.network = append(h.network, newPortal(p))
	}
	for _, s := range o.Services {
		s.DependsOn = slices.Clone(s.DependsOn)
		h.services[fold(string(s.Name))] = &service{s}
	}
	return h
}

// Entry is one operation that the host has carried out, or tried to.
type Entry struct {
	Op       string // the method's name: "Mkdir"
	Args     []string
	Changed  bool     // the host is not as it was before
	Services []string // that were started or stopped, in this order
	Err      string   // why it did not succeed
}

// Ledger returns what the host has done so far, in the order in which it was done. Operations that a context,
// or Fault, stopped before they began are not in it.
func (h *Host) Ledger() []Entry {
	h.mu.Lock()
	defer h.mu.Unlock()
	entries := slices.Clone(h.ledger)
	for i := range entries {
		entries[i].Args = slices.Clone(entries[i].Args)
		entries[i].Services = slices.Clone(entries[i].Services)
	}
	return entries
}

// do carries out one operation under the lock and enters it in the ledger.
func do[T any](ctx context.Context, h *Host, op string, args []string, act func() (result T, changed bool, err error)) (T, error) {
	var none T
	if err := ctx.Err(); err != nil {
		return none, err
	}
	if h.options.Block != nil {
		h.options.Block(ctx, op, args...)
	}
	if h.options.Fault != nil {
		if err := h.options.Fault(op, args...); err != nil {
			return none, err
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	// The caller may have given up while it waited for the lock; then the operation is not done.
	if err := ctx.Err(); err != nil {
		return none, err
	}
	if err := h.note(Line{Op: op, Args: args}); err != nil {
		return none, err
	}
	h.touched = nil
	result, changed, err := act()
	entry := Entry{Op: op, Args: args, Changed: changed, Services: h.touched}
	if err != nil {
		entry.Err = err.Error()
		result = none
	}
	h.ledger = append(h.ledger, entry)
	if noted := h.note(Line{Op: op, Args: args, Ended: true, Err: entry.Err}); err == nil && noted != nil {
		return none, noted
	}
	return result, err
}

// change is do for operations that return nothing.
func (h *Host) change(ctx context.Context, op string, args []string, act func() (changed bool, err error)) error {
	_, err := do(ctx, h, op, args, func() (struct{}, bool, error) {
		changed, err := act()
		return struct{}{}, changed, err
	})
	return err
}

// ask is do for operations that change nothing.
func ask[T any](ctx context.Context, h *Host, op string, args []string, act func() (T, error)) (T, error) {
	return do(ctx, h, op, args, func() (T, bool, error) {
		result, err := act()
		return result, false, err
	})
}

// about is ask for what is known of one object.
func about[K, O, T any](ctx context.Context, h *Host, op, arg string, find func(K) (O, error), key K, say func(O) T) (T, error) {
	return ask(ctx, h, op, []string{arg}, func() (said T, err error) {
		object, err := find(key)
		if err == nil {
			said = say(object)
		}
		return said, err
	})
}

// fold makes names that differ in case alone equal, as NTFS and the service manager do.
func fold(s string) string { return strings.ToLower(strings.ToUpper(s)) }
