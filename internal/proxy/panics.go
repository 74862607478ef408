package proxy

import (
	"fmt"
	"reflect"
	"regexp"
	"runtime"
	"strings"
)

// describePanic says what happened without repeating what the caller sent: only the runtime's own words are known not to
// hold a secret of the request. Other types may say that they are errors of the runtime, and their texts may hold anything,
// or panic themselves.
func describePanic(v any) string {
	if err, ok := v.(runtime.Error); ok && isOfRuntime(reflect.TypeOf(v)) {
		return "panic: " + bounds.ReplaceAllString(err.Error(), "$1#")
	}
	return fmt.Sprintf("panic with a value of type %T", v)
}

// bounds are the numbers in errors about bounds: an index may be a character.
var bounds = regexp.MustCompile(`([\[:]|length |capacity )-?[0-9]+`)

func isOfRuntime(t reflect.Type) bool {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t.PkgPath() == "runtime"
}

// maxFrames bounds a stack in the log.
const maxFrames = 64

// stack is where the caller of the caller stands: functions and lines, without the arguments that a stack of the debugger
// has. Those are lengths of texts, and characters.
func stack() string {
	pcs := make([]uintptr, maxFrames)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(3, pcs)])
	var b strings.Builder
	for {
		f, more := frames.Next()
		fmt.Fprintf(&b, "%s\n\t%s:%d\n", f.Function, f.File, f.Line)
		if !more {
			return b.String()
		}
	}
}
