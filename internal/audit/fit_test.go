package audit

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"
)

// texts returns how many bytes the texts of a value have.
func texts(v reflect.Value) (n int) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			return texts(v.Elem())
		}
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			return 0
		}
		for _, f := range v.Fields() {
			n += texts(f)
		}
	case reflect.Slice:
		for i := range v.Len() {
			n += texts(v.Index(i))
		}
	case reflect.String:
		return v.Len()
	case reflect.Uint8:
		return 1
	}
	return n
}

func TestWhatFitsHasTheLineOfTheWhole(t *testing.T) {
	g := rand.New(rand.NewPCG(1, 1))
	hold := func(t *testing.T, e Event) {
		t.Helper()
		short, err := Fit(e)
		if err != nil {
			t.Fatal(err)
		}
		if n := texts(reflect.ValueOf(short)); n > MaxRecord {
			t.Errorf("%d bytes of text are kept", n)
		}
		for _, stamp := range []struct {
			session, prev string
			seq           uint64
		}{{"s", "", 1}, {strings.Repeat("S", 26), "", 1000}, {strings.Repeat("S", 26), strings.Repeat("p", 44), math.MaxUint64}} {
			a, b := e, short
			a.stamp(stamp.session, stamp.seq)
			b.stamp(stamp.session, stamp.seq)
			a.Prev, b.Prev = stamp.prev, stamp.prev
			want, err := Encode(nil, a)
			if err != nil {
				t.Fatal(err)
			}
			got, err := Encode(nil, b)
			if err != nil || !bytes.Equal(got, want) || len(got) > MaxRecord {
				t.Fatalf("%v\n%s\nwant\n%s", err, got, want)
			}
		}
	}
	for name, letter := range map[string]string{"letters": "x", "control characters": "\x01", "bytes that are not UTF-8": "\xff", "replacement characters": "\ufffd", "astral": "\U000e0001"} {
		t.Run(name, func(t *testing.T) {
			for _, entries := range []int{1, 2, 20, 2000} {
				for range 30 {
					e := filled(strings.Repeat(letter, 1+g.IntN(400)), entries)
					e.Session, e.Prev, e.Seq = "", "", 0
					e.What.Params, _ = json.Marshal(strings.Repeat(letter, g.IntN(3000)))
					e.Time = time.Date(2026, 1, 2, 3, 4, 5, 6, time.FixedZone("", 3600))
					hold(t, e)
				}
			}
		})
	}
	t.Run("lines of every length about the longest", func(t *testing.T) {
		for n := 7_800; n < 8_300; n++ {
			e := Event{Type: TypeAdmission, Stage: StageResponseComplete, ID: "a", Time: time.Unix(1, 0), Decision: &Decision{Reason: strings.Repeat("x", n/2)},
				Who: &Who{User: &WhoUser{Name: "u", Groups: []string{strings.Repeat("g", n-n/2)}}}}
			hold(t, e)
		}
	})
}

func TestWhatFitsKeepsNoLongerTextAlive(t *testing.T) {
	const n = 200
	kept := make([]Event, n)
	before := liveHeap()
	for i := range kept {
		long := strings.Repeat(fmt.Sprint(i%10), 1<<20)
		groups := make([]string, 5000)
		for j := range groups {
			groups[j] = long[:10]
		}
		var err error
		if kept[i], err = Fit(Event{Type: TypeAdmission, ID: "a", Time: time.Unix(1, 0), Who: &Who{User: &WhoUser{Name: long, Groups: groups}},
			What: &What{Params: []byte(`"` + long[:20] + `"`), Targets: []Target{{Value: long, Canonical: long[:100]}}}}); err != nil {
			t.Fatal(err)
		}
	}
	if each := (liveHeap() - before) / n; each > 2*MaxRecord {
		t.Errorf("each holds %d bytes", each)
	}
	if kept[0].Who.User.Groups[0] == "" {
		t.Error("there are no groups")
	}
}

func liveHeap() int64 {
	var stats runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}
