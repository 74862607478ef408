package packaging

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func script(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("install.ps1")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// Windows PowerShell 5.1 reads a file without a byte-order mark in the code page of the machine.
func TestTheScriptReadsTheSameInEveryCodePage(t *testing.T) {
	for i, r := range script(t) {
		if r > 126 || r < 32 && r != '\n' {
			t.Fatalf("byte %d is %q", i, r)
		}
	}
}

func TestTheScriptIsStrictAndEvaluatesNoText(t *testing.T) {
	text := script(t)
	for _, want := range []string{"Set-StrictMode -Version 3.0\n", "$ErrorActionPreference = 'Stop'\n", "SupportsShouldProcess = $true", "#Requires -Version 5.1\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("there is no %q", want)
		}
	}
	for _, word := range []string{"Invoke-Expression", "iex ", "cmd /c", "cmd.exe /c", "Start-Process", "ScriptBlock]::Create", "-ExecutionPolicy", "DownloadString", "Invoke-WebRequest"} {
		if strings.Contains(strings.ToLower(text), strings.ToLower(word)) {
			t.Errorf("it has %s", word)
		}
	}
	// The call operator hands arguments to PowerShell 5.1's own quoting, which is broken.
	if call := regexp.MustCompile(`(?m)^\s*&\s`).FindString(text); call != "" {
		t.Errorf("it calls a program with %q", call)
	}
}

func TestNothingIsChangedBeforeItIsAskedFor(t *testing.T) {
	_, body, _ := strings.Cut(script(t), "\nAssert-Administrator\n")
	asked := strings.Index(body, "ShouldProcess(")
	if asked < 0 {
		t.Fatal("it does not ask")
	}
	for _, step := range []string{"Backup-Service", "Install-Proxy", "'uninstall'"} {
		if at := strings.Index(body, step); at < asked {
			t.Errorf("%s comes at %d, before the question at %d", step, at, asked)
		}
	}
	for _, check := range []string{"Resolve-File -Path $Config", "Assert-Hash", "'check-config'"} {
		if at := strings.Index(body, check); at < 0 || at > asked {
			t.Errorf("%s comes at %d, after the question at %d", check, at, asked)
		}
	}
}

func TestEveryParameterIsExplained(t *testing.T) {
	help, code, _ := strings.Cut(script(t), "#>")
	_, code, _ = strings.Cut(code, "param(")
	code, _, _ = strings.Cut(code, "\n)\n")
	var declared []string
	for _, m := range regexp.MustCompile(`(?m)^    \[(?:string(?:\[\])?|switch)\] \$(\w+)`).FindAllStringSubmatch(code, -1) {
		declared = append(declared, m[1])
	}
	var explained []string
	for _, m := range regexp.MustCompile(`(?m)^\.PARAMETER (\w+)$`).FindAllStringSubmatch(help, -1) {
		explained = append(explained, m[1])
	}
	slices.Sort(declared)
	slices.Sort(explained)
	if len(declared) < 10 || !slices.Equal(declared, explained) {
		t.Errorf("declared %q\nexplained %q", declared, explained)
	}
}
