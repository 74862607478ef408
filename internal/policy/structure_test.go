package policy

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"
)

// repeated writes n parts, in each of which %d is its number and %p the number before.
func repeated(n int, part string) string {
	var b strings.Builder
	for i := 1; i <= n; i++ {
		b.WriteString(strings.NewReplacer("%d", strconv.Itoa(i), "%p", strconv.Itoa(i-1)).Replace(part))
	}
	return b.String()
}

// nested writes opening n times, what is in the middle, and closing n times.
func nested(n int, opening, middle, closing string) string {
	return repeated(n, opening) + middle + strings.Repeat(closing, n)
}

// hanging are modules that OPA's compiler takes many seconds for, or for ever. None has more than 256 KiB.
var hanging = map[string]string{
	"22 comprehensions":            "x := " + nested(22, "[1|", "true", "]"),
	"28 comprehensions":            "x := " + nested(28, "[1|", "true", "]"),
	"comprehensions of sets":       "x := " + nested(22, "{1|", "true", "}"),
	"comprehensions of objects":    "x := " + nested(22, "{1:1|", "true", "}"),
	"comprehensions in heads":      "x := " + nested(22, "[", "1", "|true]"),
	"comprehensions compared":      "x := " + nested(20, "[1|[]!=", "1", "]"),
	"comprehensions of variables":  "x := " + nested(20, "[a%d | a%d := ", "input.a", "]"),
	"comprehensions in references": "x := " + nested(20, "input[[1|", "true", "]]"),
	"comprehensions and every":     "x if {" + nested(20, "every a in [1|", "true", "] {a}") + "}",
	"comprehensions that are not":  "x if " + nested(22, "not [1|", "true", "]"),
	"comprehensions with":          "x if " + nested(22, "[1|", "true", "] with input as 1"),
	"every":                        "x if {" + nested(150, "every a%d in input { a%d;", "true", "}") + "}",
	"templates":                    "x := " + nested(20, `$"{`, "input.a", `}"`),
	"templates and comprehensions": "x := " + nested(12, `$"{[1|`, "input.a", `]}"`),
	"a long sum":                   "x := 1" + strings.Repeat("+1", 60000),
	"a long sum of input":          "x := input.a" + strings.Repeat("+input.a", 20000),
	"a long comparison":            "x := 1" + strings.Repeat("==1", 60000),
	"a long union":                 "x := input.a" + strings.Repeat("|input.a", 20000),
	"a long membership":            "x if 1" + strings.Repeat(" in input.a", 20000),
	"a long chain of else":         "x := 1 if input.a" + strings.Repeat("\nelse := 2 if input.b", 10000),
	"many expressions":             "x if {" + repeated(5000, "\ninput.a == %d") + "\n}",
	"many variables":               "x if {" + repeated(5000, "\na%d := input.a\na%d == 1") + "\n}",
	"variables in reverse":         "x if {" + repeated(400, "\na%p = a%d + 1") + "\na400 = 1\n}",
	"products of some":             "x if {" + repeated(5000, "\nsome a%d in input\na%d") + "\n}",
	"many comprehensions":          "x if {" + repeated(1000, "\nb%d := [1 | input.a[_]]\nb%d") + "\n}",
	"a long template":              `x := $"` + strings.Repeat("{input.a}", 20000) + `"`,
	"a chain of rules":             "x0 := 1" + repeated(10000, "\nx%d := x%p"),
	"rules of many values":         "x0 := 1" + repeated(2000, "\nx%d := [x%p] if input.a\nelse := {x%p}"),
	"rules of one set":             repeated(6000, "\nx contains %d if input.a == %d"),
	"functions with defaults":      repeated(5000, "\ndefault f%d(_) := 1\nf%d(a) := 2 if a"),
	"functions of many branches":   "f0(a) if a" + repeated(60, "\nf%d(a) if f%p(a)"+strings.Repeat(" else if f%p(a)", 59)),
	"imports of many branches":     repeated(60, "\nimport data.pipeguard.admission.f%p as g%p") + "\nf0(a) if a" + repeated(60, "\nf%d(a) if g%p(a)"+strings.Repeat(" else if g%p(a)", 59)),
	"templates of many branches":   "f0(a) := a" + repeated(50, "\nf%d(a) := $\"{f%p(a)}\""+strings.Repeat(" if a else := $\"{f%p(a)}\"", 50)),
	"imports":                      repeated(8000, "\nimport data.y%d") + "\nx := [" + repeated(8000, "y%d,") + "1]",
	"operands":                     "f(" + repeated(8000, "a%d,") + "b) := [b," + repeated(8000, "a%d,") + "1]",
	"numbers of one hash":          "x := {" + repeated(20000, "1.%d1, ") + "1}",
	"large numbers of one hash":    "x := {" + repeated(8000, "10000000000000000000000%d, ") + "1}",
	"numbers with exponents":       "x := {" + repeated(9000, "1%de-9, ") + "1}",
	"numbers of one hash in sums":  "x := {" + repeated(9000, "\n1.%d1,") + "1}",
	"arrays of one hash":           "x := {" + permutations(5000) + "1}",
	"sets of many types":           "x := {" + repeated(12000, "{%d:1},") + "1}",
	"arrays of many types":         "x := [" + repeated(9000, "{%d:1},") + "1]\ny := x[_]",
	"objects of many types":        "x := {" + repeated(9000, "%d:{%d:1},") + "0:1}\ny := x[_]",
	"names of arrays":              "x := {" + repeated(9000, "[%d]:1,") + "0:1}",
	"names that come again":        "x := {" + repeated(9000, "%d:1,") + strings.Repeat("1:1,", 20000) + "0:1}",
	"lists of many types":          repeated(1100, "\nx contains [{%d:1}, {%d:{1:2}}]"),
	"aliases in annotations":       "# METADATA\n# custom:\n#   a: &a\n" + strings.Repeat("#   - q:\n", 1300) + "#   b:\n" + strings.Repeat("#   - *a\n", 90) + "x := 1",
	"equal keys in annotations":    "# METADATA\n" + strings.Repeat("#a:\n", 6000) + "x := 1",
	"many keys in annotations":     "# METADATA\n" + repeated(20000, "#a%d:\n") + "x := 1",
	"equal keys in one line":       "# METADATA\n# custom: {" + strings.Repeat("a,", 4000) + "a}\nx := 1",
	"equal keys behind CR":         "# METADATA\n#a:" + strings.Repeat("\ra:", 4000) + "\nx := 1",
	"equal keys behind U+0085":     "# METADATA\n#a:" + strings.Repeat("\u0085a:", 4000) + "\nx := 1",
	"equal keys behind U+2028":     "# METADATA\n#a:" + strings.Repeat("\u2028a:", 4000) + "\nx := 1",
	"many annotations":             repeated(50, "# METADATA\n"+strings.Repeat("#a:\n", 100)+"x%d := 1\n"),
	"a number of many digits":      "x := " + strings.Repeat("9", MaxNumber+1),
	"imports of input":             "import input.a\n" + repeated(5000, "\nimport input.a as a%d"),
	"a long name":                  "x := 1\nzz" + strings.Repeat(".b", 120_000) + " := 1",
	"long names":                   repeated(500, "\nzz.a%d"+strings.Repeat(".b", 240)+" := 1"),
	"long names of sets":           repeated(500, "\nzz.a%d"+strings.Repeat(".b", 240)+" contains 1"),
	"long names of defaults":       repeated(500, "\ndefault zz.a%d"+strings.Repeat(".b", 240)+" := 1"),
	"long names in brackets":       repeated(200, "\nzz.a%d"+strings.Repeat(`["b"]`, 240)+" := 1"),
	"a long reference":             "x := input" + strings.Repeat(".b", 120_000),
	"long references":              "x if {" + repeated(100, "\ninput.a%d"+strings.Repeat(".b", 240)) + "\n}",
	"a long import":                "import input" + strings.Repeat(".b", 120_000) + "\nx := b",
	"a long name after with":       "x if input.a with input" + strings.Repeat(".b", 120_000) + " as 1",
	"unifications":                 "x if {\na0 = input.a" + repeated(5000, "\n[a%d, a%d] = [a%p, input.z]") + "\n}",
}

// listing are modules that OPA's type checker tells all keys of an object for, again and again. Their text alone is well.
var listing = map[string]string{
	"keys that are not there":                 "b := {" + repeated(8000, `"%d":1,`) + `"a":1}` + repeated(600, "\nk%d if { "+repeated(15, "b.u%d;")+"true }"),
	"keys that are not there, of a variable":  "b := {" + repeated(8000, `"%d":1,`) + `"a":1}` + repeated(100, "\nk%d if { x := b;"+repeated(15, "x.u%d;")+"true }"),
	"keys of another kind":                    "b := {" + repeated(8000, `"%d":1,`) + `"a":1}` + repeated(300, "\nk%d if { x := 1;"+repeated(15, "b[x] == %d;")+"true }"),
	"keys of another kind, of one of several": "b := {" + repeated(4000, `"%d":1,`) + `"a":1} if input.a` + "\nb := {" + repeated(4000, `"b%d":1,`) + `"b":1} if input.b` + repeated(300, "\nk%d if { x := 1;"+repeated(15, "b[x] == %d;")+"true }"),
	"numbers in place of rules":               repeated(600, "\nx%d := 1") + repeated(500, "\nk%d if { "+repeated(15, "data.pipeguard[%d];")+"true }"),
	"strays below rules":                      "b := {" + repeated(8000, `"%d":1,`) + `"a":1}` + repeated(500, "\nzz.a%d.foo := b") + repeated(100, "\nk%d if { "+repeated(15, "data.pipeguard.admission.zz.q.foo.u%d;")+"true }"),
}

// permutations are n arrays of the same numbers, whose hashes are equal.
func permutations(n int) string {
	var b strings.Builder
	for i := range n {
		digits := []byte("12345678")
		for k := len(digits); k > 0; k-- {
			digits[k-1], digits[i%k] = digits[i%k], digits[k-1]
			i /= k
		}
		b.WriteString("[" + strings.Join(strings.Split(string(digits), ""), ",") + "],")
	}
	return b.String()
}

func TestModulesThatHangTheCompilerAreRefusedBeforeIt(t *testing.T) {
	WithoutRaceDetector(t)
	all := maps.Clone(hanging)
	maps.Copy(all, listing)
	for name, text := range all {
		t.Run(name, func(t *testing.T) {
			text := "package pipeguard.admission\n\n" + text + "\n"
			if len(text) > 256<<10 {
				t.Fatalf("%d bytes", len(text))
			}
			for file, want := range map[string]string{"b.rego": "b.rego:", "b_test.rego": "b_test.rego:"} {
				if isTestFile(file) {
					text = strings.Replace(text, "package pipeguard.admission", "package b_test", 1)
				}
				problems := Validate(small().with(map[string]string{file: text}), Options{})
				if len(problems) == 0 || problems[0].Code != CodeLimit || !strings.HasPrefix(problems[0].String(), want) || problems[0].Line < 3 {
					t.Fatalf("problems %.300v", problems)
				}
			}
		})
	}
}

// Short names stand for long ones in many places: the compiler writes them all.
func TestTheTextOfNamesIsBounded(t *testing.T) {
	ring := repeated(1100, "\nh%d := h%p") + "\nh0 := h1099\n"
	for what, c := range map[string]struct {
		text string
		most int // bytes that the name may have
	}{
		"a package":          {"package %s\n\nx := 1\n", maxNameText - len("data.x..")},
		"a rule":             {"package b\n\n%s := 1\n", maxNameText - len("data.b..")},
		"a part of a rule":   {"package b\n\nx[\"%s\"] := 1\n", maxNameText - len("data.b.x..")},
		"an import":          {"package b\n\nimport data.c[\"%s\"] as z\n\nx := z\n", maxNameText - len("data.c..")},
		"a ring of rules":    {"package %s\n" + ring, -1},
		"an import in rules": {"package b\n\nimport data.c[\"%s\"] as z\n" + repeated(100, "\nx if z.h%d == %d"), maxNameText - len("data.c..")},
	} {
		for extra := range 2 {
			n := c.most + extra
			if c.most < 0 {
				n = 10_000
			}
			problems := Validate(small().with(map[string]string{"b.rego": fmt.Sprintf(c.text, strings.Repeat("a", n))}), Options{})
			isRefused := len(problems) > 0 && problems[0].Code == CodeLimit && strings.HasPrefix(problems[0].String(), "b.rego:") && strings.Contains(problems[0].Message, "256 bytes")
			if want := extra > 0 || c.most < 0; isRefused != want {
				t.Errorf("%s of %d bytes: %.300v", what, n, problems)
			}
		}
	}
}

// A module may have a fault in each word.
func TestNoMoreProblemsAreListedThanAnyoneReads(t *testing.T) {
	for what, text := range map[string]string{
		"of the parser":   "package b\n\n" + strings.Repeat("h ", 5000) + "\n",
		"of the compiler": "package b\n" + repeated(500, "\nx%d := y%d"),
	} {
		problems := Validate(small().with(map[string]string{"b.rego": text}), Options{})
		if len(problems) <= 1 || len(problems) > maxProblems+1 || len(problems) == maxProblems+1 && !strings.Contains(problems[maxProblems].Message, "not listed") {
			t.Errorf("%s: %d problems, the last %.300v", what, len(problems), problems[max(0, len(problems)-1):])
		}
	}
}

func TestANameOfAPackageIsBounded(t *testing.T) {
	for parts, wanted := range map[int]bool{maxName - 2: true, maxName - 1: false, 120_000: false} {
		text := "package b" + strings.Repeat(".b", parts-1) + "\n\nx := 1\n"
		problems := Validate(small().with(map[string]string{"b.rego": text}), Options{})
		if wanted != (len(problems) == 0) || !wanted && (problems[0].Code != CodeLimit || !strings.HasPrefix(problems[0].String(), "b.rego:")) {
			t.Errorf("%d parts: %.300v", parts, problems)
		}
	}
}

func TestModulesThatAreTooComplexAreNotFormatted(t *testing.T) {
	WithoutRaceDetector(t)
	for name, text := range hanging {
		_, err := Format("b.rego", []byte("package lib\n\n"+text+"\n"))
		if p, ok := errors.AsType[*ProblemsError](err); !ok || p.Problems[0].Code != CodeLimit || p.Problems[0].File != "b.rego" {
			t.Errorf("%s: %.300v", name, err)
		}
	}
}

func TestWhatPoliciesNeedIsWithinTheBoundsOfTheCompiler(t *testing.T) {
	for name, text := range map[string]string{
		"comprehensions":        "x := " + nested(5, "[1|", "true", "]"),
		"a sum":                 "x := 1" + strings.Repeat("+1", 200),
		"branches":              "x := 1 if input.a" + strings.Repeat("\nelse := 2 if input.b", 60),
		"a list of names":       "x := {" + repeated(5000, `"name-%d",`) + `"a"}`,
		"a table":               "x := {" + repeated(500, `"name-%d": {"a": ["b", "c"], "n": %d},`) + `"a": null}`,
		"a long number":         "x := " + strings.Repeat("9", MaxNumber),
		"expressions of a rule": "x if {" + repeated(150, "\ninput.a == %d") + "\n}",
		"rules":                 repeated(800, "\nx%d if input.a == %d"),
	} {
		if problems := Validate(small().with(map[string]string{"b.rego": "package lib\n\n" + text + "\n"}), Options{}); len(problems) > 0 {
			t.Errorf("%s: %.300v", name, problems)
		}
	}
}

// TestWhatAModuleCanAskForIsBounded holds what modules at the bounds of a text make OPA allocate, which is what they cost: types
// that are copied, sets that are built.
func TestWhatAModuleCanAskForIsBounded(t *testing.T) {
	WithoutRaceDetector(t)
	const most = 192 << 20
	brackets, commas, numbers := maxText.brackets-2, maxText.commas-2, maxText.numbers-2
	for name, text := range map[string]string{
		"a list of names":         "x := {" + repeated(commas, "`name-%d`,") + "1}",
		"numbers of one hash":     "x := {" + repeated(numbers, "1.%d1,") + "1}",
		"arrays of one hash":      "x := {" + permutations(min(brackets, commas/8)) + "1}",
		"sets of many types":      "x := {" + repeated(brackets, "{%d:1},") + "1}",
		"arrays of many types":    "x := [" + repeated(brackets-8, "{%d:1},") + "1]\ny := x[_]\nz if x[_] == y",
		"objects of many types":   "x := {" + repeated(brackets-8, "%d:{%d:1},") + "0:1}\ny := x[_]\nz if x[_] == y",
		"lists of many types":     repeated(brackets/2, "\nx contains {%d:[1]}"),
		"names that come again":   "x := {" + repeated(commas/2, "%d:1,") + repeated(commas/2, "1:1,") + "0:1}",
		"comparisons":             "x := {" + repeated(commas/2, "%d:1,") + "0:1}\ny := {" + repeated(commas/2, "%d:1,") + "0:1}" + repeated(100, "\nz if {\nx == y\ninput.a == %d\n}"),
		"references to a list":    "x := [" + repeated(commas-4, "1,") + "1]" + repeated(250, "\ny%d if x[_] == %d"),
		"references to an array":  "x := [" + repeated(brackets/4, "[%d, {%d}],") + "1]" + repeated(200, "\ny%d if x[_] == %d"),
		"rules of many types":     repeated(min(brackets, maxRules-10), "\nx := {`%d`: input.a} if input.b == %d"),
		"a chain of rules":        "x0 := 1" + repeated(1000, "\nx%d if { x%p; x%p == 1; x%p == 2 }"),
		"rules of long names":     repeated(maxRules-10, "\na%d"+strings.Repeat(".b", maxName-3)+" := 1"),
		"long references":         repeated(maxRules-10, "\nx if input.a%d"+strings.Repeat(".b", maxReference-2)),
		"references to nothing":   repeated(maxRules-10, "\nx if data.a%d"+strings.Repeat(".b", maxReference-2)),
		"equal keys":              repeated(maxText.entries/maxAnnotation, "# METADATA\n"+strings.Repeat("#a:\n", maxAnnotation-1)+"x%d := 1\n"),
		"equal long keys":         repeated(maxText.entries/maxAnnotation, "# METADATA\n"+strings.Repeat("#"+strings.Repeat("a", 50)+":\n", maxAnnotation-1)+"x%d := 1\n"),
		"keys that are not there": "b := {" + repeated(1000, `"%d":1,`) + `"a":1}` + repeated(6, "\nk%d if { "+repeated(10, "b.u%d;")+"true }"),
		"imports":                 repeated(maxImports, "\nimport input.a%d") + "\nx := [" + repeated(maxImports, "a%d,") + "1]",
	} {
		text = "package lib\n\n" + text + "\n"
		if _, p := checkText("b.rego", text); p != nil {
			t.Errorf("%s is no module at the bounds: %v", name, p)
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		problems := Validate(small().with(map[string]string{"b.rego": text}), Options{})
		runtime.ReadMemStats(&after)
		if bytes := after.TotalAlloc - before.TotalAlloc; bytes > most {
			t.Errorf("%s: %d MiB are allocated, %d problems", name, bytes>>20, len(problems))
		}
	}
}

func TestAllModulesTogetherAreBounded(t *testing.T) {
	files := map[string]string{}
	for i := range maxTextFactor + 1 {
		files[fmt.Sprintf("b%d.rego", i)] = fmt.Sprintf("package lib%d\n\nx := {%s1}\n", i, permutations(maxText.brackets-1))
	}
	problems := Validate(small().with(files), Options{})
	if len(problems) != 1 || problems[0].Code != CodeLimit || !strings.Contains(problems[0].Message, "all modules") {
		t.Errorf("problems %.300v", problems)
	}
}

func TestNumbersThatMayHaveOneHashAreCounted(t *testing.T) {
	for text, want := range map[string]int{
		"{1, 22, 333}": 0, "{1.5, 2.5}": 2, "[1e9, 1E-9, 2e+3 ]": 3, "{123456789012345 }": 0, "{1234567890123456 }": 1,
		"{-1.5 }": 1, "a1.b, x2e5 ": 0, `"10.0.0.1" "v1.2"`: 1, "1.5\n": 1, "1..2 ": 1, "1": 0,
	} {
		if c, _ := checkText("b.rego", text); c.numbers != want {
			t.Errorf("%q: %d, want %d", text, c.numbers, want)
		}
	}
}

// nesting writes terms at random, most of them inside others.
type nesting struct{ *rand.Rand }

func (n nesting) term(left int) string {
	if left <= 0 {
		return []string{"1", "input.a", `"s"`, "input.a[_]"}[n.IntN(4)]
	}
	in := func() string { return n.term(left - 1 - n.IntN(3)) }
	switch n.IntN(12) {
	case 0:
		return "[" + in() + " | " + in() + "]"
	case 1:
		return "{" + in() + " | " + in() + "}"
	case 2:
		return "{" + in() + ": " + in() + " | input.b}"
	case 3:
		return "[" + in() + ", " + in() + "]"
	case 4:
		return "{" + in() + ": " + in() + "}"
	case 5:
		return "count(" + in() + ")"
	case 6:
		return "(" + in() + " == " + in() + ")"
	case 7:
		return `$"a{` + in() + `}"`
	case 8:
		return "[1 | every x" + strconv.Itoa(left) + " in " + in() + " { x" + strconv.Itoa(left) + " == " + in() + " }]"
	case 9:
		return "(" + in() + " in " + in() + ")"
	case 10:
		return "[y | some y in " + in() + "; not " + in() + "]"
	default:
		return "input[" + in() + "]"
	}
}

// FuzzNesting holds that a module is refused, or compiles: an input that takes long is what the fuzzer reports as a hang.
func FuzzNesting(f *testing.F) {
	for seed := range uint64(60) {
		f.Add(seed, byte(seed))
	}
	f.Fuzz(func(t *testing.T, seed uint64, depth byte) {
		n := nesting{rand.New(rand.NewPCG(seed, 24))} //nolint:gosec // a test is to be repeatable
		text := fmt.Sprintf("package lib\n\nx := %s\n\ny if {\n\tz := %s\n\tz == %s\n}\n", n.term(int(depth%24)), n.term(int(depth%16)), n.term(int(depth%8)))
		for _, p := range Validate(small().with(map[string]string{"b.rego": text}), Options{}) {
			if p.Code == CodeInternal {
				t.Fatalf("%s\n%s", p, text)
			}
		}
	})
}

func TestAProblemDoesNotQuoteAllOfALongName(t *testing.T) {
	long := strings.Repeat("é", 40_000)
	for name, text := range map[string]string{
		"a name that nobody has":  "x := " + strings.Repeat("b", 40_000),
		"a name that is not used": "x if {\n\t" + strings.Repeat("b", 40_000) + " := 1\n}",
		"two values":              "x[`" + long + "`] := 1\nx[`" + long + "`] contains 1",
		"text that is no Rego":    "x := `" + long + "` `" + long + "`",
	} {
		problems := Validate(small().with(map[string]string{"b.rego": "package lib\n\n" + text + "\n"}), Options{})
		if len(problems) == 0 {
			t.Errorf("%s: no problem", name)
		}
		for _, p := range problems {
			if len(p.Message) > maxMessage+len("…") || !utf8.ValidString(p.Message) {
				t.Errorf("%s: %d bytes, %.100s", name, len(p.Message), p)
			}
		}
	}
}
