package wmi

import (
	"strings"
	"testing"
)

func TestWQLIsWritten(t *testing.T) {
	for name, test := range map[string]struct {
		query Query
		want  string
	}{
		"everything":         {Query{Namespace: Storage, Class: "MSFT_Disk"}, `SELECT * FROM MSFT_Disk`},
		"a selection":        {Query{Namespace: Storage, Class: "MSFT_Disk", Select: []string{"Number", "Size"}}, `SELECT Number, Size, __PATH FROM MSFT_Disk`},
		"a number":           {Query{Namespace: Storage, Class: "MSFT_Disk", Where: []Equal{{"Number", uint32(4294967295)}}}, `SELECT * FROM MSFT_Disk WHERE Number = 4294967295`},
		"a negative number":  {Query{Namespace: CIMv2, Class: "C", Where: []Equal{{"N", int64(-1)}}}, `SELECT * FROM C WHERE N = -1`},
		"a byte is a number": {Query{Namespace: CIMv2, Class: "C", Where: []Equal{{"N", uint8('A')}}}, `SELECT * FROM C WHERE N = 65`},
		"two conditions":     {Query{Namespace: CIMv2, Class: "C", Where: []Equal{{"A", true}, {"B", false}}}, `SELECT * FROM C WHERE A = TRUE AND B = FALSE`},
		"backslashes": {
			Query{Namespace: Storage, Class: "MSFT_Volume", Where: []Equal{{"UniqueId", `\\?\Volume{0b1c}\`}}},
			`SELECT * FROM MSFT_Volume WHERE UniqueId = '\\\\?\\Volume{0b1c}\\'`,
		},
		"an empty text":                  {Query{Namespace: SMB, Class: "C", Where: []Equal{{"P", ""}}}, `SELECT * FROM C WHERE P = ''`},
		"letters of any script":          {Query{Namespace: SMB, Class: "C", Where: []Equal{{"P", `\\srv\d€pôt`}}}, `SELECT * FROM C WHERE P = '\\\\srv\\d€pôt'`},
		"a namespace in capital letters": {Query{Namespace: `ROOT\default`, Class: "C"}, `SELECT * FROM C`},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := test.query.WQL()
			if err != nil || got != test.want {
				t.Errorf("got  %s, %v\nwant %s", got, err, test.want)
			}
		})
	}
}

func TestWQLRefuses(t *testing.T) {
	good := func() Query {
		return Query{Namespace: Storage, Class: "C", Select: []string{"P"}, Where: []Equal{{"P", "x"}}}
	}
	if _, err := good().WQL(); err != nil {
		t.Fatal(err)
	}
	value := func(v any) func(*Query) { return func(q *Query) { q.Where[0].Value = v } }
	for name, spoil := range map[string]func(*Query){
		"no class":                     func(q *Query) { q.Class = "" },
		"a class with more behind it":  func(q *Query) { q.Class = "C WHERE 1=1" },
		"a class that is a number":     func(q *Query) { q.Class = "1C" },
		"a class with a dash":          func(q *Query) { q.Class = "Win32-Disk" },
		"a class of another script":    func(q *Query) { q.Class = "Сlass" },
		"a class without end":          func(q *Query) { q.Class = strings.Repeat("C", 257) },
		"an empty selection":           func(q *Query) { q.Select = []string{} },
		"a star among the properties":  func(q *Query) { q.Select = []string{"*"} },
		"two properties in one":        func(q *Query) { q.Select = []string{"A,B"} },
		"a condition on an expression": func(q *Query) { q.Where[0].Property = "1=1 OR P" },
		"a condition on nothing":       func(q *Query) { q.Where[0].Property = "" },
		"no namespace":                 func(q *Query) { q.Namespace = "" },
		"a namespace of elsewhere":     func(q *Query) { q.Namespace = `\\other\root\cimv2` },
		"a namespace with slashes":     func(q *Query) { q.Namespace = "root/cimv2" },
		"a namespace that goes up":     func(q *Query) { q.Namespace = `root\..\cimv2` },
		"a namespace without root":     func(q *Query) { q.Namespace = `cimv2` },
		"an empty part of a namespace": func(q *Query) { q.Namespace = `root\\cimv2` },
		"a deep namespace":             func(q *Query) { q.Namespace = "root" + strings.Repeat(`\a`, 8) },
		"a single quote":               value(`x' OR ''='`),
		"a double quote":               value(`x" OR ""="`),
		"an escaped quote":             value(`x\' OR 1=1 --`),
		"a NUL":                        value("x\x00y"),
		"a line break":                 value("x\ny"),
		"a delete character":           value("x\x7f"),
		"a control character above":    value("x\u0085"),
		"broken UTF-8":                 value("x\xff"),
		"half a surrogate":             value("x\xed\xa0\x80"),
		"a long text":                  value(strings.Repeat("x", 1025)),
		"no value":                     value(nil),
		"a fraction":                   value(1.5),
		"a list":                       value([]string{"x"}),
		"bytes":                        value([]byte("x")),
		"a text of another type":       value(named("x", "y", nil)),
	} {
		t.Run(name, func(t *testing.T) {
			query := good()
			spoil(&query)
			if got, err := query.WQL(); err == nil || got != "" {
				t.Errorf("got %s, %v", got, err)
			}
		})
	}
}

func TestWQLErrorsDoNotRepeatValues(t *testing.T) {
	_, err := Query{Namespace: Storage, Class: "C", Where: []Equal{{"Property", "hunter2'"}}}.WQL()
	if err == nil || strings.Contains(err.Error(), "hunter2") || !strings.Contains(err.Error(), "Property") {
		t.Error(err)
	}
}

// unquote reads a literal as WQL does: it ends at the first quote that no backslash stands before.
func unquote(literal string) (text, rest string, ok bool) {
	literal, ok = strings.CutPrefix(literal, "'")
	if !ok {
		return "", "", false
	}
	var b strings.Builder
	for i := 0; i < len(literal); i++ {
		switch literal[i] {
		case '\'':
			return b.String(), literal[i+1:], true
		case '\\':
			i++
			if i == len(literal) {
				return "", "", false
			}
		}
		b.WriteByte(literal[i])
	}
	return "", "", false
}

func FuzzLiteralEndsWhereItShould(f *testing.F) {
	for _, seed := range []string{"", `\`, `\\`, `\'`, `'`, `"`, `\\?\Volume{1}\`, "a\x00b", "é", "\xff", `x' OR '1'='1`, "\u2019", "\u02bc"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		literal, err := quoted(text)
		if err != nil {
			return
		}
		got, rest, ok := unquote(literal)
		if !ok || got != text || rest != "" {
			t.Errorf("%q was written %s and reads %q with %q behind it (%t)", text, literal, got, rest, ok)
		}
	})
}

func TestAssociatorsIsWritten(t *testing.T) {
	through := Association{Through: "MSFT_DiskToPartition", Result: "MSFT_Partition"}
	for _, path := range []string{
		`\\NODE\ROOT\Microsoft\Windows\Storage:MSFT_Disk.ObjectId="{1}\\\\NODE\\root/Microsoft/Windows/Storage/Providers_v2\\WSP_Disk.ObjectId=\"{a}:DI:\\\\?\\Disk{b}\""`,
		`Win32_DiskPartition.DeviceID="Disk #0, Partition #0"`,
		`C.A=1,B="x"`,
	} {
		got, err := associators(Instance{Namespace: Storage, Path: path}, through)
		want := "ASSOCIATORS OF {" + path + "} WHERE AssocClass = MSFT_DiskToPartition ResultClass = MSFT_Partition"
		if err != nil || got != want {
			t.Errorf("got  %s, %v\nwant %s", got, err, want)
		}
	}
}

func TestAssociatorsRefuses(t *testing.T) {
	good := Association{Through: "T", Result: "R"}
	for name, test := range map[string]struct {
		of      Instance
		through Association
	}{
		"no path":                       {Instance{Namespace: Storage}, good},
		"no namespace":                  {Instance{Path: "C.K=1"}, good},
		"a path that ends early":        {Instance{Namespace: Storage, Path: `C.K="x"} WHERE ClassDefsOnly {`}, good},
		"a brace before the key":        {Instance{Namespace: Storage, Path: `C}.K="x"`}, good},
		"a key's value that has no end": {Instance{Namespace: Storage, Path: `C.K="x`}, good},
		"an end that is escaped":        {Instance{Namespace: Storage, Path: `C.K="x\"`}, good},
		"quotes of the other kind":      {Instance{Namespace: Storage, Path: `C.K='x'`}, good},
		"a space outside of the key":    {Instance{Namespace: Storage, Path: `C.K=1 WHERE`}, good},
		"a line break":                  {Instance{Namespace: Storage, Path: "C.K=\"x\n\""}, good},
		"broken UTF-8":                  {Instance{Namespace: Storage, Path: "C.K=\"\xff\""}, good},
		"a path without end":            {Instance{Namespace: Storage, Path: strings.Repeat("C", 8193)}, good},
		"no association":                {Instance{Namespace: Storage, Path: "C.K=1"}, Association{Result: "R"}},
		"no result":                     {Instance{Namespace: Storage, Path: "C.K=1"}, Association{Through: "T"}},
		"more behind the association":   {Instance{Namespace: Storage, Path: "C.K=1"}, Association{Through: "T ResultClass=R", Result: "R"}},
	} {
		t.Run(name, func(t *testing.T) {
			if got, err := associators(test.of, test.through); err == nil || got != "" {
				t.Errorf("got %s, %v", got, err)
			}
		})
	}
}
