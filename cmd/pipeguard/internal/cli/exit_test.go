package cli

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// The table of exit codes is in the help and in the documentation, word for word.
func TestExitCodesAreToldOnce(t *testing.T) {
	doc, err := os.ReadFile("../../../../docs/cli.md")
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, c := range exitCodes {
		want = append(want, fmt.Sprintf("| %d | %s |", c.code, c.means))
	}
	table := "| code | meaning |\n|---|---|\n" + strings.Join(want, "\n") + "\n\n"
	if !strings.Contains(string(doc), table) {
		t.Errorf("docs/cli.md lacks the table:\n%s", table)
	}
}
