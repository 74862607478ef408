package winhost

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pipeguard/pipeguard/internal/proxy/wmi"
)

// fakeWMI answers like WMI from tables of hand-made instances: nothing in it was recorded on Windows. It selects by the
// conditions of a query as WQL does, without regard to case, and writes down the methods that are called.
type fakeWMI struct {
	t       *testing.T
	classes map[string][]wmi.Instance   // by class
	related map[string][]wmi.Instance   // by path of one end and class of the other, "Disk 1>MSFT_Partition"
	answers map[string]func() answer    // by "Class.Method"; without one the answer is 0
	fails   map[string]error            // by class, by "path>class" or by "Class.Method"
	changes map[string]func(c wmi.Call) // what a method does to the tables
	calls   []string                    // "Class.Method path In"
}

// answer is a method's.
type answer struct {
	code uint32
	out  map[string]any
	err  error
}

func newFakeWMI(t *testing.T) *fakeWMI {
	t.Helper()
	return &fakeWMI{
		t: t, classes: map[string][]wmi.Instance{}, related: map[string][]wmi.Instance{},
		answers: map[string]func() answer{}, fails: map[string]error{}, changes: map[string]func(wmi.Call){},
	}
}

type properties = map[string]any

func row(path string, p properties) wmi.Instance { return wmi.Instance{Path: path, Properties: p} }

// set changes a property of an instance, or takes it away, wherever it is in the tables.
func (f *fakeWMI) set(path, property string, value any) {
	for _, table := range []map[string][]wmi.Instance{f.classes, f.related} {
		for _, rows := range table {
			for _, r := range rows {
				if r.Path != path {
					continue
				}
				if value == missing {
					delete(r.Properties, property)
				} else {
					r.Properties[property] = value
				}
			}
		}
	}
}

// missing is the value of a property that the host does not have.
var missing = struct{ absent bool }{true}

func (f *fakeWMI) Query(ctx context.Context, q wmi.Query) ([]wmi.Instance, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if _, err := q.WQL(); err != nil {
		f.t.Errorf("a query that cannot be written: %v", err)
	}
	if err := f.fails[q.Class]; err != nil {
		return nil, err
	}
	var found []wmi.Instance
next:
	for _, r := range f.classes[q.Class] {
		for _, where := range q.Where {
			if !strings.EqualFold(fmt.Sprint(r.Properties[where.Property]), fmt.Sprint(where.Value)) {
				continue next
			}
		}
		found = append(found, selected(r, q.Select))
	}
	return found, nil
}

// selected has only what was asked for: what reads more fails here as it would on Windows.
func selected(r wmi.Instance, names []string) wmi.Instance {
	if names == nil {
		return r
	}
	p := properties{}
	for _, name := range names {
		if value, has := r.Properties[name]; has {
			p[name] = value
		}
	}
	return wmi.Instance{Path: r.Path, Properties: p}
}

func (f *fakeWMI) Associated(ctx context.Context, of wmi.Instance, a wmi.Association) ([]wmi.Instance, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	key := of.Path + ">" + a.Result
	return f.related[key], f.fails[key]
}

func (f *fakeWMI) Call(ctx context.Context, c wmi.Call) (wmi.Result, error) {
	if err := ctx.Err(); err != nil {
		return wmi.Result{}, err
	}
	method := c.Class + "." + c.Method
	line := method
	if c.Path != "" {
		line += " " + c.Path
	}
	if len(c.In) > 0 {
		in := map[string]any{}
		for name, value := range c.In {
			if s, isSecret := value.(wmi.Secret); isSecret {
				value = "secret(" + string(s) + ")"
			}
			in[name] = value
		}
		line += " " + strings.TrimPrefix(fmt.Sprint(in), "map")
	}
	f.calls = append(f.calls, line)
	if err := f.fails[method]; err != nil {
		return wmi.Result{}, err
	}
	if answers := f.answers[method]; answers != nil {
		if a := answers(); a.code != 0 || a.err != nil || a.out != nil {
			return wmi.Result{Return: a.code, Out: a.out}, a.err
		}
	}
	if change := f.changes[method]; change != nil {
		change(c)
	}
	return wmi.Result{}, nil
}

// wantCalls compares the methods that were called.
func (f *fakeWMI) wantCalls(want ...string) {
	f.t.Helper()
	if diff := cmp.Diff(want, f.calls); diff != "" {
		f.t.Errorf("methods called (-want +got):\n%s", diff)
	}
}

// says makes a method answer a number.
func (f *fakeWMI) says(method string, code uint32) {
	f.answers[method] = func() answer { return answer{code: code} }
}

// ended is a context that is over.
func ended(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}

// wants checks an error: its kind, and that it says each of these.
func wants(t *testing.T, err, kind error, says ...string) {
	t.Helper()
	if kind == nil && err != nil || !errors.Is(err, kind) {
		t.Errorf("got error %v, want %v", err, kind)
		return
	}
	for _, text := range says {
		if err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("error %q does not say %q", err, text)
		}
	}
}
