package clustercmd

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pipeguard/pipeguard/cmd/pipeguard/internal/cli"
)

func TestOnlyTheWebhookWritesEntriesByItsNames(t *testing.T) {
	writes := func(manager, field string) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{Manager: manager, FieldsV1: metav1.NewFieldsV1(`{"f:webhooks":{"k:{\"name\":\"a\"}":{".":{},"f:name":{},` + field + `}}}`)}
	}
	const rules, conditions, authority, service = `"f:rules":{}`, `"f:matchConditions":{}`, `"f:clientConfig":{"f:caBundle":{}}`, `"f:clientConfig":{"f:service":{}}`
	for _, c := range []struct {
		manager, field string
		code           int
	}{
		{"pipeguard-rules", rules, cli.ExitYes},
		{"pipeguard-certificates", authority, cli.ExitYes},
		{"cert-manager-cainjector", authority, cli.ExitYes},
		{"pipeguard-rules", conditions, cli.ExitNo},
		{"pipeguard-certificates", rules, cli.ExitNo},
		{"pipeguard-certificates", service, cli.ExitNo},
		{"pipeguard-x", rules, cli.ExitNo},
		{"pipeguard", rules, cli.ExitNo},
		{"pipeguard-rules2", rules, cli.ExitNo},
		{"", rules, cli.ExitNo},
	} {
		f := strict()
		get[configurationOf](t, f, atConfigurations, 0).ManagedFields = []metav1.ManagedFieldsEntry{writes("helm", conditions), writes(c.manager, c.field)}
		if report, got := f.survey(t); got.code != c.code {
			t.Errorf("%+v: exit code %d, %s", c, got.code, report.of(t, "objects"))
		}
	}
}

func TestTheOwnManagersAreThoseOfTheWebhook(t *testing.T) {
	owner := regexp.MustCompile(`client\.FieldOwner\("([^"]+)"\)`)
	var found []string
	for _, name := range []string{"hooks", "certs"} {
		text, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "internal", name, "cluster.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range owner.FindAllStringSubmatch(string(text), -1) {
			found = append(found, m[1])
		}
	}
	slices.Sort(found)
	if want := sortedNames(ownManagers()); !slices.Equal(found, want) {
		t.Errorf("the webhook writes as %q, known are %q", found, want)
	}
}
