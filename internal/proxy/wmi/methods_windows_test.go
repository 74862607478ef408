package wmi

import (
	"errors"
	"strings"
	"testing"
)

func TestParametersOfAnotherTypeAreRefused(t *testing.T) {
	p := open(t, Options{})
	got, err := p.Call(t.Context(), Call{Namespace: CIMv2, Class: "Win32_Process", Method: "Create", In: map[string]any{"CommandLine": 12345}})
	if err == nil || !strings.Contains(err.Error(), "parameter CommandLine") || strings.Contains(err.Error(), "12345") || errors.Is(err, ErrOutcome) {
		t.Error(got, err)
	}
}

// registry calls StdRegProv, whose keys Windows declares unsigned and Wine signed.
func registry(t *testing.T, p *Pool, method string, in map[string]any) Result {
	t.Helper()
	const localMachine = 0x80000002
	call := Call{Namespace: `root\default`, Class: "StdRegProv", Method: method, In: in}
	in["hDefKey"] = uint32(localMachine)
	got, err := p.Call(t.Context(), call)
	if err != nil {
		in["hDefKey"] = int32(localMachine - 1<<32)
		got, err = p.Call(t.Context(), call)
	}
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func TestMethodsOfAClassAreExecuted(t *testing.T) {
	p := open(t, Options{})
	const key = `SOFTWARE\Microsoft\Windows NT\CurrentVersion`
	got := registry(t, p, "GetStringValue", map[string]any{"sSubKeyName": key, "sValueName": "CurrentVersion"})
	if version, ok := got.Out["sValue"].(string); got.Return != 0 || !ok || !strings.HasPrefix(version, "6.") {
		t.Error(got)
	}
	got = registry(t, p, "GetStringValue", map[string]any{"sSubKeyName": key, "sValueName": "nosuch"})
	if got.Return != 2 && got.Return != 1 { // ERROR_FILE_NOT_FOUND: a number, no error
		t.Error(got)
	}
	got = registry(t, p, "EnumKey", map[string]any{"sSubKeyName": `SOFTWARE\Microsoft\Windows NT`})
	if names, ok := got.Out["sNames"].([]any); got.Return != 0 || !ok || len(names) == 0 || names[0] != "CurrentVersion" {
		t.Error(got)
	}
	started, err := p.Call(t.Context(), Call{Namespace: CIMv2, Class: "Win32_Process", Method: "Create", In: map[string]any{"CommandLine": "nosuch.exe"}})
	if err != nil || started.Return == 0 {
		t.Error(started, err)
	}
}

func TestMethodsOfAnInstanceAreExecuted(t *testing.T) {
	p := open(t, Options{})
	got, err := p.Call(t.Context(), Call{Namespace: CIMv2, Class: "Win32_Process", Path: one(t, p, itself()).Path, Method: "GetOwner"})
	if user, ok := got.Out["User"].(string); err != nil || got.Return != 0 || !ok || user == "" {
		t.Error(got, err)
	}
	if _, err := p.Call(t.Context(), Call{Namespace: CIMv2, Class: "Win32_Process", Path: `Win32_Process.Handle="999999"`, Method: "GetOwner"}); err == nil {
		t.Error("a method of a process that there is not")
	}
}
