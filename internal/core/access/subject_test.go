package access

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pipeguard/pipeguard/internal/core/caller"
)

var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

const (
	digest = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	other  = "sha256:ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff"
)

// driver is a subject and a container that is it.
func driver() (Subject, caller.Caller) {
	return Subject{Name: "driver", Namespace: "kube-system", ServiceAccounts: []string{"node"}, Containers: []string{"app"}, Images: []string{"r.io/a/driver:*"}},
		caller.Declared(caller.Pod{Namespace: "kube-system", ServiceAccount: "node"}, caller.Container{Name: "app", Image: "r.io/a/driver:v1"})
}

func TestASubjectIsWhatItsListsSay(t *testing.T) {
	for name, tt := range map[string]struct {
		subject   func(*Subject)
		container func(*caller.Caller)
		field     Field // that does not fit
	}{
		"itself":                    {},
		"any account":               {subject: func(s *Subject) { s.ServiceAccounts = nil }, container: func(c *caller.Caller) { c.Pod.ServiceAccount = "x" }},
		"any container":             {subject: func(s *Subject) { s.Containers = nil }, container: func(c *caller.Caller) { c.Container.Name = "" }},
		"any image":                 {subject: func(s *Subject) { s.Images = nil }, container: func(c *caller.Caller) { c.Container.Image = "" }},
		"one of several":            {subject: func(s *Subject) { s.Images = []string{"b", "r.io/a/driver:v1"} }},
		"another namespace":         {container: func(c *caller.Caller) { c.Pod.Namespace = "Kube-system" }, field: FieldNamespace},
		"another account":           {container: func(c *caller.Caller) { c.Pod.ServiceAccount = "Node" }, field: FieldServiceAccount},
		"another container":         {container: func(c *caller.Caller) { c.Container.Name = "App" }, field: FieldContainer},
		"another image":             {container: func(c *caller.Caller) { c.Container.Image = "r.io/a/driver-of-others:v1" }, field: FieldImage},
		"no container's name":       {container: func(c *caller.Caller) { c.Container.Name = "" }, field: FieldContainer},
		"no image":                  {container: func(c *caller.Caller) { c.Container.Image = "" }, field: FieldImage},
		"an image that is none":     {container: func(c *caller.Caller) { c.Container.Image = "r.io/a/driver:v1 " }, field: FieldImage},
		"no image that is any":      {subject: func(s *Subject) { s.Images = []string{"*", "r.io*", "/*", "", "r.io/a/d**"} }, field: FieldImage},
		"a container's empty entry": {subject: func(s *Subject) { s.Containers = []string{"x"} }, container: func(c *caller.Caller) { c.Container.Name = "" }, field: FieldContainer},
	} {
		s, c := driver()
		if tt.subject != nil {
			tt.subject(&s)
		}
		if tt.container != nil {
			tt.container(&c)
		}
		is, ended, miss := NewSubjects([]Subject{s}).Match(&c, OfPipe, now)
		if (is != nil) != (tt.field == "") || ended != nil || miss.Field != tt.field || (miss.Subject != nil) != (tt.field != "") {
			t.Errorf("%s: subject %v, nearest by %q, want %q", name, is, miss.Field, tt.field)
		}
	}
	// Nobody is a subject of whom the namespace or the account is not known, even if all are.
	for _, c := range []caller.Caller{
		{Assurance: caller.AssurancePod, Pod: caller.Pod{Namespace: "a"}}, {Assurance: caller.AssurancePod, Pod: caller.Pod{ServiceAccount: "a"}},
		{Assurance: caller.AssuranceProcess, Pod: caller.Pod{Namespace: "a", ServiceAccount: "a"}}, {Pod: caller.Pod{Namespace: "a", ServiceAccount: "a"}},
	} {
		if is, _, _ := NewSubjects([]Subject{{Name: "all", Namespace: c.Pod.Namespace}}).Match(&c, OfPipe, now); is != nil {
			t.Errorf("%+v is a subject", c)
		}
	}
}

func TestAPermissionEndsAtItsSecond(t *testing.T) {
	for offset, isOpen := range map[time.Duration]bool{
		time.Second: true, time.Hour: true, 999 * time.Millisecond: false, 0: false, -1: false, -time.Hour: false,
	} {
		s, c := driver()
		s.ExpiresAt = now.Add(offset)
		is, ended, miss := NewSubjects([]Subject{s}).Match(&c, OfPipe, now)
		if (is != nil) != isOpen || (ended != nil) == isOpen || miss.Subject != nil {
			t.Errorf("%s from now: is %v, was %v", offset, is, ended)
		}
	}
	end := Subject{ExpiresAt: now.Add(time.Millisecond)}
	if end.HasEnded(now.Add(-1)) || !end.HasEnded(now) || end.End() != now || new(Subject).HasEnded(now) || !new(Subject).End().IsZero() {
		t.Error("a permission ends at another time than the beginning of its second")
	}
}

func TestOfSeveralSubjectsTheOneThatLastsLongestCounts(t *testing.T) {
	s, c := driver()
	named := func(name string, in time.Duration) Subject {
		n := s
		n.Name = name
		if in != 0 {
			n.ExpiresAt = now.Add(in)
		}
		return n
	}
	for want, list := range map[string][]Subject{
		"for good":   {named("soon", time.Minute), named("for good", 0), named("again", 0), named("later", time.Hour), named("gone", -time.Hour)},
		"later":      {named("soon", time.Minute), named("gone", -time.Hour), named("later", time.Hour)},
		"":           {named("gone", -time.Hour), named("gone last", -time.Minute), named("gone first", -2*time.Hour)},
		"after that": {{Name: "other", Namespace: "kube-system", ServiceAccounts: []string{"x"}}, named("after that", 0)},
	} {
		is, ended, _ := NewSubjects(list).Match(&c, OfPipe, now)
		switch {
		case want == "" && (is != nil || ended == nil || ended.Name != "gone last"):
			t.Errorf("is %v, was %v", is, ended)
		case want != "" && (is == nil || is.Name != want):
			t.Errorf("%v, want %s", is, want)
		}
	}
	first, second := named("first", 0), named("second", 0)
	if Longest(&first, &second) != &first || Longest(nil, &second) != &second || Longest(&first, nil) != &first || Longest(nil, nil) != nil {
		t.Error("of two that last as long it is not the first")
	}
}

func TestTheNearestSubjectIsTheOneThatFitsInMostFields(t *testing.T) {
	_, c := driver()
	subjects := NewSubjects([]Subject{
		{Name: "elsewhere", Namespace: "team"},
		{Name: "account", Namespace: "kube-system", ServiceAccounts: []string{"x"}},
		{Name: "image", Namespace: "kube-system", Images: []string{"r.io/b:v1", "r.io/c:v1"}},
		{Name: "image too", Namespace: "kube-system", Images: []string{"r.io/d:v1"}},
		{Name: "container", Namespace: "kube-system", Containers: []string{"x"}},
	})
	if _, _, miss := subjects.Match(&c, OfPipe, now); miss.Subject.Name != "image" || miss.Field != FieldImage || !slices.Equal(miss.Want(), []string{"r.io/b:v1", "r.io/c:v1"}) {
		t.Errorf("%+v", miss)
	}
	if _, _, miss := subjects.Match(new(caller.Declared(caller.Pod{Namespace: "kube-system", ServiceAccount: "y"}, caller.Container{})), OfAccount, now); miss.Subject != nil {
		t.Errorf("%+v beside a subject for any account", miss)
	}
	c.Pod.Namespace = "shop"
	if _, _, miss := subjects.Match(&c, OfPipe, now); miss.Subject.Name != "elsewhere" || !slices.Equal(miss.Want(), []string{"team"}) {
		t.Errorf("%+v", miss)
	}
	if _, _, miss := NewSubjects(nil).Match(&c, OfPipe, now); miss.Subject != nil || miss.Want() != nil {
		t.Errorf("%+v of none", miss)
	}
}

func TestABeginningThatEndsWithinANameIsNoOtherName(t *testing.T) {
	for text, want := range map[string][]string{
		"r.io/driver*":           {"r.io/driver", "r.io/driver/", "r.io/driver:", "r.io/driver@"},
		"r.io/driver:v1*":        {"r.io/driver:v1"},
		"r.io/driver:v1.*":       {"r.io/driver:v1."},
		"r.io:50/d@*":            {"r.io:50/d@"},
		"r.io/d@" + digest + "*": {"r.io/d@" + digest},
		"r.io/driver:v1@*":       nil,
		"r.io/driver:v1/*":       nil,
		"r.io/driver:v1:*":       nil,
		"r.io/driver:*":          {"r.io/driver:"},
		"r.io/team/*":            {"r.io/team/"},
		"r.io/driver":            {"r.io/driver"},
		digest:                   {digest},
		"r.io/team-*":            nil,
		"r.io/a@sha256:01*":      nil,
		"r.io*":                  nil,
		"*":                      nil,
		"":                       nil,
		"r.io/dri*er":            nil,
		"r.io/driver**":          nil,
		"r.io//x*":               nil,
		"r.io/../x*":             nil,
		"r.io/driver\u200b*":     nil,
		strings.Repeat("a", 513): nil,
	} {
		got, err := SpellImage(text)
		if !slices.Equal(got, want) || (err == nil) != (want != nil) {
			t.Errorf("%q: %q, %v", text, got, err)
		}
	}
	for image, want := range map[string]bool{
		"r.io/driver": true, "r.io/driver:v1": true, "r.io/driver/x:v1": true, "r.io/driver@" + digest: true, "r.io/driver:v1@" + digest: true,
		"r.io/driver-of-others:v1": false, "r.io/drivers": false, "r.io/driver.x": false, "r.io/drive": false, "r.io/driver_x/y": false, "": false,
	} {
		s := NewSubjects([]Subject{{Namespace: "a", Images: []string{"r.io/driver*"}}})
		if is, _, _ := s.Match(new(caller.Declared(caller.Pod{Namespace: "a", ServiceAccount: "b"}, caller.Container{Image: image})), OfPipe, now); (is != nil) != want {
			t.Errorf("%q: %t", image, is != nil)
		}
	}
}

// Runtimes go by the digest: what restricts the tag says nothing of a name that has one.
func TestAPatternOfTagsCoversNoDigest(t *testing.T) {
	for text, want := range map[string]bool{
		"r.io/d:v1.*": false, "r.io/d:v1-*": false, "r.io/d:v1*": false, "r.io/d:v1.0*": false, "r.io/d:v1.0": false, "r.io/d:v1.0@" + other: false,
		"r.io/d:*": true, "r.io/d*": true, "r.io/*": true, "r.io/d@" + digest: true, "r.io/d:v1.0@" + digest: true, "r.io/d:v1.0@" + digest + "*": true, digest: true,
		"r.io/d@*": false, "r.io/d": false, // of names without a tag
	} {
		s := NewSubjects([]Subject{{Namespace: "a", Images: []string{text}}})
		if is, _, _ := s.Match(new(caller.Declared(caller.Pod{Namespace: "a", ServiceAccount: "b"}, caller.Container{Image: "r.io/d:v1.0@" + digest})), OfPipe, now); (is != nil) != want {
			t.Errorf("%q: %t", text, is != nil)
		}
	}
}

func TestWhatNoRuntimeTakesIsNoImage(t *testing.T) {
	for image, want := range map[string]bool{
		"r.io/d:v1.2": true, "r.io:5000/d": true, "r.io:5000/d:V_1": true, "localhost:5000/a/d@" + digest: true, "d": true, "d:1": true, digest: true,
		"r.io/d:v1.@" + digest: true, "r.io/d:" + strings.Repeat("a", 128): true,
		"r.io/d:v1.2/evil": false, "r.io/d:v1:v2": false, "r.io:50:50/d": false, "r.io:x/d": false, "r.io:/d": false, "r.io/d:": false, "r.io/d:.a": false,
		"r.io/d:v1+2": false, "r.io/d:v1@x": false, "r.io/d:@" + digest: false, "r.io/@" + digest: false, ":v1": false, "@" + digest: false,
		"a:1:2": false, "r.io/d:" + strings.Repeat("a", 129): false, "r.io/d@" + digest + "@" + digest: false,
	} {
		if IsImage(image) != want {
			t.Errorf("%q: %t", image, !want)
		}
	}
}

// FuzzSpellImage: what a pattern means is what it begins with, up to the end of a name, and no text makes it mean more.
func FuzzSpellImage(f *testing.F) {
	f.Add("r.io/driver:v1.*", "r.io/driver:v1.2@"+digest)
	for _, text := range []string{"r.io/driver*", "r.io/driver:v1.*", "r.io/a@" + digest, digest, "*", "r.io:5000/a/b:*"} {
		f.Add(text, "r.io/driver:v1")
	}
	f.Fuzz(func(t *testing.T, text, image string) {
		patterns, err := SpellImage(text)
		if err != nil {
			if len(patterns) > 0 {
				t.Errorf("%q is refused and has patterns", text)
			}
			return
		}
		before, isPrefix := strings.CutSuffix(text, "*")
		for _, p := range patterns {
			if !strings.HasPrefix(p, before) || !isPrefix && p != text {
				t.Errorf("%q has the pattern %q", text, p)
			}
			if !IsImage(image) || !CoversImage(p, image) {
				continue
			}
			at := strings.IndexByte(image, '@')
			if _, tag, _ := cutTag(before); tag != "" && at >= 0 && !strings.Contains(before, image[at+1:]) {
				t.Errorf("%q covers %q, whose tag says nothing", text, image)
			}
			if !strings.HasPrefix(image, before) && (at < 0 || !strings.HasSuffix(before, image[at+1:])) {
				t.Errorf("%q covers %q", text, image)
			}
			if rest := strings.TrimPrefix(image, before); isPrefix && rest != image && rest != "" && isWord(before[len(before)-1]) && strings.IndexByte("/:@", rest[0]) < 0 {
				t.Errorf("%q covers %q, which goes on within the name", text, image)
			}
		}
	})
}
