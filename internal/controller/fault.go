package controller

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pipeguard/pipeguard/api/v1alpha1"
	"github.com/pipeguard/pipeguard/internal/policy"
	"github.com/pipeguard/pipeguard/internal/policyset"
)

// stage is how far an attempt came.
type stage int

const (
	stageActive   stage = iota // to the end
	stageRead                  // the base policies could not be read
	stageAssemble              // some object is not valid
	stageCompile               // some policies do not compile
	stageTests                 // some policies' tests fail
	stageTime                  // there was not enough time
	stageChecks                // a built-in check does not hold, or the engine went wrong
)

// named is an object without its UID: errors know no more.
type named struct{ kind, name string }

// fault is the error of an attempt, sorted by whose it is.
type fault struct {
	stage stage
	err   error
	// own holds the problems that lie in an object.
	own map[named][]v1alpha1.Problem
	// others are the problems that lie in no object.
	others []string
}

// explain sorts an error of Outcome.Err.
func explain(err error) fault {
	f := fault{err: err, own: map[named][]v1alpha1.Problem{}}
	if err == nil {
		return f
	}
	for _, e := range policyset.Leaves(err) {
		if o, ok := errors.AsType[*policyset.ObjectError](e); ok {
			key := named{o.Kind, o.Name}
			f.own[key] = append(f.own[key], v1alpha1.Problem{Code: codeObject, Message: policyset.Clip(o.Err.Error(), maxProblem)})
			continue
		}
		byModule, others := policyset.ProblemsOf(e)
		for module, problems := range byModule {
			key := named{kindPolicyModule, module}
			f.own[key] = append(f.own[key], problems...)
		}
		f.others = append(f.others, others...)
	}
	f.stage = stageOf(err, len(f.own) > 0)
	return f
}

func stageOf(err error, ofObjects bool) stage {
	if _, ok := errors.AsType[*unreadError](err); ok {
		return stageRead
	}
	if _, ok := errors.AsType[*policy.ProblemsError](err); ok {
		return stageCompile
	}
	if _, ok := errors.AsType[*policy.TestsError](err); ok {
		return stageTests
	}
	switch {
	case ofObjects:
		return stageAssemble
	case ranOutOfTime(err):
		return stageTime
	}
	return stageChecks
}

// codeObject is the code of a problem with an object as a whole, as policyset gives it.
const codeObject = "object"

// culprits names the objects that an object waits for, and says what is wrong with the one, or with several.
func (f fault) culprits(one, several string) string {
	byKind := map[string][]string{}
	for key := range f.own {
		byKind[key.kind] = append(byKind[key.kind], key.name)
	}
	var out []string
	for _, kind := range slices.Sorted(maps.Keys(byKind)) {
		slices.Sort(byKind[kind])
		out = append(out, kind+" "+few(byKind[kind]))
	}
	verb := one
	if len(f.own) > 1 {
		verb = several
	}
	return "waits: " + strings.Join(out, ", ") + " " + verb
}

// maxNames is how many names a message lists.
const maxNames = 5

// few lists names, and how many more there are.
func few(names []string) string {
	if len(names) <= maxNames {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:maxNames], ", "), len(names)-maxNames)
}

const (
	// maxProblem bounds the text of one problem, and maxMessage that of one condition: they are read in a terminal.
	maxProblem = 512
	maxMessage = 1024
	// maxLines is how many problems a message lists.
	maxLines = 5
)

// lines puts problems into one message.
func lines(problems []string) string {
	more := ""
	if len(problems) > maxLines {
		more = fmt.Sprintf("\nand %d more", len(problems)-maxLines)
		problems = problems[:maxLines]
	}
	return policyset.Clip(strings.Join(problems, "\n"), maxMessage-len(more)) + more
}

// position writes a problem as editors read it.
func position(p v1alpha1.Problem) string {
	where := ""
	if p.File != "" {
		where = p.File + ": "
		switch {
		case p.Line > 0 && p.Column > 0:
			where = fmt.Sprintf("%s:%d:%d: ", p.File, p.Line, p.Column)
		case p.Line > 0:
			where = fmt.Sprintf("%s:%d: ", p.File, p.Line)
		}
	}
	return policyset.Clip(where+p.Code+": "+p.Message, maxProblem)
}
