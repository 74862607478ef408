package policy

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
)

// Codes of problems that OPA has no code for. Its own begin with rego_.
const (
	CodeLimit      = "limit"       // a limit of Options is exceeded
	CodeReserved   = "reserved"    // a module defines a document that is not its own
	CodeBuiltin    = "builtin"     // a module calls a function that policies may not call
	CodeEntrypoint = "entry_point" // nothing defines the document that is asked for
	CodeMetadata   = "metadata"    // a METADATA block cannot become a Rule
	CodeData       = "data"        // the data cannot be used
	CodeAddition   = "addition"    // a module that is added to a base does more than add to it
	CodeName       = "name"        // a package, a rule or a field of the input that is misspelt
	CodeInternal   = "internal"    // the compiler itself went wrong
)

// Problem is one reason why modules cannot be activated, and where it is.
type Problem struct {
	File    string `json:"file,omitempty"`
	Line    int    `json:"line,omitempty"` // from 1; 0 means the whole file
	Col     int    `json:"col,omitempty"`  // from 1
	Code    string `json:"code"`
	Message string `json:"message"`
}

// String gives file:line:col, code and message, as editors read it.
func (p Problem) String() string {
	where := ""
	if p.File != "" {
		where = p.File + ": "
		if p.Line > 0 {
			where = fmt.Sprintf("%s:%d:%d: ", p.File, p.Line, p.Col)
		}
	}
	return where + p.Code + ": " + p.Message
}

// ProblemsError is the error of an activation that the compiler refused.
type ProblemsError struct{ Problems []Problem }

// Error lists the problems, one a line.
func (e *ProblemsError) Error() string {
	return fmt.Sprintf("compile policies: %v", e.Unwrap())
}

// Unwrap returns the problems as a list of errors that errors.Join has made.
func (e *ProblemsError) Unwrap() error {
	errs := make([]error, len(e.Problems))
	for i, p := range e.Problems {
		errs[i] = errors.New(p.String())
	}
	return errors.Join(errs...)
}

func at(loc *ast.Location, code, message string) Problem {
	p := Problem{Code: code, Message: message}
	if loc != nil {
		p.File, p.Line, p.Col = loc.File, loc.Row, max(1, loc.Col) // the end of a file has column 0
	}
	return p
}

// problemsOf turns an error of OPA's parser or compiler into problems. file is used where the error names none.
func problemsOf(file string, err error) []Problem {
	list, ok := errors.AsType[ast.Errors](err)
	if !ok {
		one, isOne := errors.AsType[*ast.Error](err)
		if !isOne {
			return []Problem{{File: file, Code: ast.ParseErr, Message: err.Error()}}
		}
		list = ast.Errors{one}
	}
	list = list[:min(len(list), maxProblems+1)] // the parser has one for each word that it does not take; the last says that there are more
	out := make([]Problem, 0, len(list))
	for _, e := range list {
		p := at(e.Location, e.Code, e.Message)
		if _, picture := e.Details.(*ast.ParserErrorDetail); e.Details != nil && !picture { // the position says what the picture shows
			if lines := e.Details.Lines(); len(lines) > 0 {
				p.Message += ": " + strings.Join(lines, " / ")
			}
		}
		if p.File == "" {
			p.File = file
		}
		out = append(out, explainBuiltin(p))
	}
	return out
}

// sortProblems sorts problems by place, and cuts the list at maxProblems.
func sortProblems(ps []Problem) []Problem {
	slices.SortStableFunc(ps, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Col, b.Col), cmp.Compare(a.Message, b.Message))
	})
	out := ps[:0]
	for _, p := range ps {
		if n := len(out); n > 0 && p.repeats(out[n-1]) {
			out[n-1] = p
			continue
		}
		out = append(out, p)
	}
	if len(out) > maxProblems {
		out = append(out[:maxProblems:maxProblems], Problem{File: out[maxProblems].File, Line: out[maxProblems].Line, Col: out[maxProblems].Col, Code: CodeLimit, Message: "problems from here on are not listed"})
	}
	for i := range out {
		if p := &out[i]; len(p.Message) > maxMessage { // it quotes the module, whose names may be as long as it is
			p.Message = strings.ToValidUTF8(p.Message[:maxMessage], "") + "…"
		}
	}
	return out
}

// repeats reports whether p is q, or q with more words: OPA's parser reports some faults twice, the second time with a hint.
func (p Problem) repeats(q Problem) bool {
	more, ok := strings.CutPrefix(p.Message, q.Message)
	q.Message = p.Message
	return ok && p == q && (more == "" || strings.HasPrefix(more, ": "))
}
