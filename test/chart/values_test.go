package chart_test

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

func TestWrongValuesAreRefused(t *testing.T) {
	for name, value := range map[string]string{
		"an unknown value":                     `replicaCount=3`,
		"an unknown value further down":        `drivers.azuredisk.enable=true`,
		"an unknown driver":                    `drivers.floppy={"enabled":true}`,
		"a driver without its values":          `drivers.smb=null`,
		"a driver that is enabled by a string": `drivers.smb.enabled="true"`,
		"a driver without pipes":               `drivers.smb.pipes=[]`,
		"a driver's pipe with its path":        `drivers.smb.pipes=["\\\\.\\pipe\\csi-proxy-smb-v1"]`,
		"a driver without a namespace":         `drivers.trident.namespace=""`,
		"any namespace for a driver":           `drivers.trident.namespace="*"`,
		"any service account for a driver":     `drivers.trident.serviceAccounts=["*"]`,
		"any image for a driver":               `drivers.smb.images=["*"]`,
		"an image's host with a star":          `drivers.smb.images=["mcr.microsoft.com*"]`,
		"a service account that is no list":    `drivers.smb.serviceAccounts="csi-smb-node-sa"`,
		"no guarded pipe":                      `parameters.guardedPipes=[]`,
		"guarded pipes that are a string":      `parameters.guardedPipes="csi-proxy*"`,
		"a star in a name":                     `parameters.guardedPipes=["a*b"]`,
		"guarded pipes that are left out":      `parameters.guardedPipes=null`,
		"an unknown preset":                    `preset="lenient"`,
		"an action that ignores":               `parameters.action="Ignore"`,
		"an unknown mode of the floor":         `floor.mode="Sometimes"`,
		"an unknown requirement":               `parameters.requirement="None"`,
		"an unknown verdict for HostProcess":   `parameters.hostProcess="deny"`,
		"host processes of a whole namespace":  `parameters.hostProcessAllowed={"a":{}}`,
		"host processes of nobody":             `parameters.hostProcessAllowed={"a":{"serviceAccounts":[]}}`,
		"an unknown verdict for equal power":   `parameters.equalPower=true`,
		"a path without a drive":               `parameters.equalPowerPaths=["\\Windows"]`,
		"a path that would end the expression": `parameters.equalPowerPaths=["C:\\x') || true || path.matches(r'"]`,
		"a path whose name ends in a dot":      `parameters.equalPowerPaths=["C:\\x.\\y"]`,
		"a share as a path":                    `parameters.equalPowerPaths=["\\\\host\\c$"]`,
		"an allowed namespace without a value": `parameters.allowedNamespaces={"a":null}`,
		"any allowed namespace":                `parameters.allowedNamespaces={"*":{}}`,
		"a list of allowed namespaces":         `parameters.allowedNamespaces=["kube-system"]`,
		"a misspelt key of a namespace":        `parameters.allowedNamespaces={"a":{"serviceaccounts":["b"]}}`,
		"a policy without pipes":               `policies.x={"subjects":[]}`,
		"hostProcess of every account":         `policies.x={"subjects":[{"name":"b","namespace":"c","hostProcess":{}}]}`,
		"host paths of every account":          `policies.x={"subjects":[{"name":"b","namespace":"c","serviceAccounts":[],"hostPaths":["C:\\k"]}]}`,
		"a host path without a drive":          `policies.x={"subjects":[{"name":"b","namespace":"c","serviceAccounts":["d"],"hostPaths":["/k"]}]}`,
		"a process with hostProcess":           `policies.x={"pipes":["a"],"subjects":[{"name":"b","hostProcess":{},"process":{"account":"S-1-5-18","program":"C:\\x.exe"}}]}`,
		"an unknown mode of a driver":          `drivers.smb.modes=["Host"]`,
		"no mode of a driver":                  `drivers.smb.modes=[]`,
		"pods of the system of any account":    `system.calico.serviceAccounts=[]`,
		"pods of an unknown system":            `system.cilium={"enabled":true}`,
		"a system without its values":          `system.calico=null`,
		"a policy with an object around it":    `policies.x={"spec":{"pipes":["a"]}}`,
		"a policy's unknown action":            `policies.x={"pipes":["a"],"admission":{"action":"Allow"}}`,
		"a policy's subject without namespace": `policies.x={"pipes":["a"],"subjects":[{"name":"b"}]}`,
		"a process of no account":              `policies.x={"pipes":["a"],"subjects":[{"name":"b","process":{"program":"C:\\x.exe"}}]}`,
		"a process by its user":                `policies.x={"pipes":["a"],"subjects":[{"name":"b","process":{"account":"SYSTEM","program":"C:\\x.exe"}}]}`,
		"programs of a directory":              `policies.x={"pipes":["a"],"subjects":[{"name":"b","process":{"account":"S-1-5-18","program":"C:\\x\\*"}}]}`,
		"a process of a namespace":             `policies.x={"pipes":["a"],"subjects":[{"name":"b","namespace":"c","process":{"account":"S-1-5-18","program":"C:\\x.exe"}}]}`,
		"a process in containers":              `policies.x={"pipes":["a"],"subjects":[{"name":"b","containers":[],"process":{"account":"S-1-5-18","program":"C:\\x.exe"}}]}`,
		"a process's token":                    `policies.x={"pipes":["a"],"subjects":[{"name":"b","node":{"requireToken":true},"process":{"account":"S-1-5-18","program":"C:\\x.exe"}}]}`,
		"an exception without an owner":        `policies.x={"pipes":["a"],"subjects":[{"name":"b","namespace":"c","reason":"d","expiresAt":"2030-01-01T00:00:00Z"}]}`,
		"an exception that ends on a day":      `policies.x={"pipes":["a"],"subjects":[{"name":"b","namespace":"c","owner":"e","reason":"d","expiresAt":"2030-01-01"}]}`,
		"a failure policy in lower case":       `webhook.failurePolicy="fail"`,
		"no time to answer":                    `webhook.timeoutSeconds=0`,
		"more time than there is":              `webhook.timeoutSeconds=31`,
		"a selector that exempts":              `webhook.namespaceSelector={}`,
		"an interval without a unit":           `scanInterval="600"`,
		"a level that there is not":            `logLevel="trace"`,
		"a port that a pod cannot open":        `webhook.port=443`,
		"a port that there is not":             `webhook.healthPort="65536"`,
		"a port with a protocol":               `webhook.metricsPort="8080/tcp"`,
		"a port on a second line":              `webhook.port="9443\n"`,
		"a DNS policy without its settings":    `dnsPolicy="None"`,
		"a network that is a string":           `hostNetwork="true"`,
		"a topology twice":                     `topologySpread.topologyKeys=["a","a"]`,
		"a registry's Secret twice":            `imagePullSecrets=[{"name":"a"},{"name":"a"}]`,
		"a chart that is off and installed":    `enabled=false`,
		"no replica":                           `replicas=0`,
		"half a replica":                       `replicas=1.5`,
		"a digest that is none":                `image.digest="latest"`,
		"a repository with a tag":              `image.repository="a/b:c"`,
		"a secret that is a string":            `imagePullSecrets=["a"]`,
		"a name too long":                      `fullnameOverride="` + strings.Repeat("x", 46) + `"`,
		"a name in capitals":                   `fullnameOverride="Guard"`,
		"a label that is a number":             `commonLabels={"a":1}`,
		"a label with a space":                 `podLabels={"a":"b c"}`,
		"settings that are no mapping":         `config=["logLevel"]`,
		"an unknown setting":                   `config={"loglevel":"debug"}`,
		"an unknown setting further down":      `config={"certificate":{"host":["a"]}}`,
		"a setting of another type":            `config={"audit":{"required":"true"}}`,
		"a blank setting":                      `config={"audit":{"log":" "}}`,
		"another kind of settings":             `config={"kind":"ProxyConfig"}`,
		"a revision that helm would round":     `bundles.minimumRevision=9007199254740993`,
		"a setting that helm would round":      `config={"bundles":{"minimumRevision":9007199254740993}}`,
		"a node's setting that helm rounds":    `node.config.bundle.minimumRevision=9007199254740993`,
		"a budget that lets no pod go":         `podDisruptionBudget.maxUnavailable=0`,
		"a budget of zero percent":             `podDisruptionBudget.maxUnavailable="0%"`,
		"no sleep before the end":              `preStopSeconds=0`,
		"a sleep longer than the grace":        `preStopSeconds=30`,
		"an interval of scrapes in words":      `serviceMonitor.interval="often"`,
		"an unknown key of cert-manager":       `certificates.certManager.issuer="x"`,
		"an issuer's unknown key":              `certificates.certManager.issuerRef={"nam":"x"}`,
		"CRDs as a string":                     `crds="no"`,
		"nodes that are enabled by a string":   `node.enabled="true"`,
		"an unknown value of nodes":            `node.replicas=1`,
		"nodes without an image":               `node.image=null`,
		"a service's name with a space":        `node.serviceName="csi proxy"`,
		"a kubelet's path with slashes":        `node.kubeletPath="C:/var/lib/kubelet"`,
		"a whole drive for the kubelet":        `node.kubeletPath="C:\\"`,
		"no room below the kubelet's path":     `node.kubeletPath="C:\\` + strings.Repeat("k", 200) + `"`,
		"a share for drivers to work in":       `node.workingDirs=["\\\\host\\share"]`,
		"a directory that ends the command":    `node.workingDirs=["C:\\a & calc"]`,
		"a directory with a variable":          `node.workingDirs=["C:\\%TEMP%"]`,
		"a directory with a quote":             `node.workingDirs=["C:\\a\"b"]`,
		"a log file without a drive":           `node.logFile="proxy.log"`,
		"metrics without a port":               `node.metricsAddress="127.0.0.1"`,
		"a port of nodes that there is not":    `node.healthPort=65536`,
		"metrics at a command":                 `node.metricsAddress=":1|calc"`,
		"a flag that ends the command":         `node.extraArgs=["-v=1 & calc"]`,
		"a flag without a dash":                `node.extraArgs=["uninstall"]`,
		"a flag on a second line":              `node.extraArgs=["-v=1\n-v=2"]`,
		"a rollout that lets no node go":       `node.updateStrategy.maxUnavailable=0`,
		"a strategy of Deployments":            `node.updateStrategy.type="Recreate"`,
		"a namespace in capitals for nodes":    `node.namespace="Nodes"`,
		"an account by its name":               `node.driverRules.user="ContainerAdministrator"`,
		"the configuration as an annotation":   `podAnnotations={"pipeguard.dev/webhook-config":"{}"}`,
		"a class on a second line":             `priorityClassName="a\n      hostNetwork: true"`,
		"a node's class on a second line":      `node.priorityClassName="a\n      hostNetwork: true"`,
		"a topology on a second line":          `topologySpread.topologyKeys=["a\n          b: true"]`,
		"a configuration that is a string":     `node.config="acl:"`,
		"an unknown key of the configuration":  `node.config.alc={}`,
		"a rule without callers":               `node.config.acl.rules=[{"name":"a","pipes":["*"],"operations":["*"]}]`,
		"a rule for everybody":                 `node.config.acl.rules=[{"name":"a","pipes":["*"],"operations":["*"],"callers":[{"assurance":"sid"}]}]`,
		"a rule without pipes":                 `node.config.acl.rules=[{"name":"a","pipes":[],"operations":["*"],"callers":[{"user":"S-1-5-18"}]}]`,
		"a rule's pipe with csi-proxy-":        `node.config.acl.rules=[{"name":"a","pipes":["csi-proxy-disk-v1"],"operations":["*"],"callers":[{"user":"S-1-5-18"}]}]`,
		"a rule's operation in lower case":     `node.config.acl.rules=[{"name":"a","pipes":["*"],"operations":["mkdir"],"callers":[{"user":"S-1-5-18"}]}]`,
		"an unknown permit":                    `node.config.acl.rules=[{"name":"a","pipes":["*"],"operations":["*"],"callers":[{"user":"S-1-5-18"}],"permits":["Format"]}]`,
		"a caller without a full path":         `node.config.acl.rules=[{"name":"a","pipes":["*"],"operations":["*"],"callers":[{"exe":"driver.exe"}]}]`,
		"a mode that there is not":             `node.config.acl.pipes=[{"pipe":"*","mode":"Audit"}]`,
		"an invented machine for nodes":        `node.config.backend="memory"`,
		"an upstream with two stars":           `node.config.upstream={"pipe":"a*-*"}`,
		"a forwarded pipe with its path":       `node.config.forward=[{"pipe":"\\\\.\\pipe\\a","to":"b"}]`,
		"a limit of nothing":                   `node.config.limits.connections=0`,
		"a caller's limit of nothing":          `node.config.acl.limits.callsPerSecond=0`,
		"a rule's limit of nothing":            `node.config.acl.rules=[{"name":"a","pipes":["*"],"operations":["*"],"callers":[{"user":"S-1-5-18"}],"limits":{"connections":0}}]`,
		"no time at all":                       `node.config.limits.stopTimeout="0s"`,
		"a time without a unit":                `node.config.limits.stopTimeout="20"`,
	} {
		if _, err := template(t, "--set-json", value); err == nil {
			t.Errorf("%s: %s is taken", name, value)
		} else if !strings.Contains(err.Error(), "specifications of the schema") && !strings.Contains(err.Error(), "preStopSeconds must be") {
			t.Errorf("%s: refused for another reason: %v", name, err)
		}
	}
}

func TestValuesThatMustPassPass(t *testing.T) {
	for _, value := range []string{
		`policies.a={"subjects":[{"name":"b","namespace":"c","serviceAccounts":["d"],"hostProcess":{"runAsUserNames":["NT AUTHORITY\\SYSTEM"]}}]}`,
		`policies.a={"subjects":[{"name":"b","namespace":"c","serviceAccounts":["d"],"hostPaths":["C:\\k"]}]}`,
		`global={"of":"another chart"}`, `parameters.guardedPipes=["*"]`, `parameters.allowedNamespaces={"a":{}}`, `parameters.equalPowerPaths=[]`,
		`policies.a={"pipes":["csi-proxy*"],"admission":{"action":"Audit"}}`, `drivers.smb.serviceAccounts=[]`,
		`policies.a={"pipes":["csi-proxy*"],"subjects":[{"name":"b","process":{"account":"S-1-5-18","program":"C:\\Program Files\\x\\x.exe"},"node":{"requireToken":false}}]}`, `config={"certificate":{"hosts":["10.96.0.20"]}}`,
		`image.repository="registry.example.com:5000/a/b"`, `enabled=true`, `webhook.port="1024"`, `webhook.port=65535`,
		`podDisruptionBudget.maxUnavailable="1"`, `node.healthPort="0"`, `node.healthPort="9300"`, `node.updateStrategy.maxUnavailable="2"`,
		`webhook.timeoutSeconds=30`, `podDisruptionBudget.maxUnavailable="50%"`,
		`parameters.equalPowerPaths=["C:\\", "d:\\Program Files (x86)\\a.b\\"]`, `resources={}`, `affinity={"podAntiAffinity":{}}`,
		`node.config.acl.pipes=[{"pipe":"*","mode":"LogOnly"}]`, `node.config.backend="upstream"`, `node.workingDirs=["C:\\Program Files (x86)\\a.b"]`,
		`node.metricsAddress="[::]:9187"`, `node.metricsAddress=":1"`, `node.extraArgs=["--v=4","-vmodule=a=1,b*=2"]`, `node.resources={}`,
	} {
		if _, err := template(t, "--set-json", value); err != nil {
			t.Errorf("%s: %v", value, err)
		}
	}
}

func TestOldServersAreRefused(t *testing.T) {
	for version, isGood := range map[string]bool{"1.29.14": false, "1.30.0": true, "1.30.2-gke.100": true, "1.36.3": true} {
		if _, err := template(t, "--kube-version", version); (err == nil) != isGood {
			t.Errorf("Kubernetes %s: %v", version, err)
		}
	}
}

// Each value must be explained where it stands, or where the value around it does.
func TestEveryValueHasASentence(t *testing.T) {
	text := read(t, chart, "values.yaml")["values.yaml"]
	key := regexp.MustCompile(`^( *)([A-Za-z-]+):`)
	explained := map[int]bool{} // by indentation: whether the last key there has a comment
	comment := ""
	for n, line := range strings.Split(text, "\n") {
		trimmed := strings.TrimSpace(line)
		switch m := key.FindStringSubmatch(line); {
		case strings.HasPrefix(trimmed, "# --"):
			comment = ""
		case strings.HasPrefix(trimmed, "#"):
			comment += strings.TrimPrefix(trimmed, "#")
		case trimmed == "":
			comment = ""
		case m != nil:
			depth := len(m[1])
			isGroup := strings.HasSuffix(trimmed, ":")
			explained[depth] = strings.HasSuffix(comment, ".") || strings.HasSuffix(comment, ":")
			ok := explained[depth]
			for d := depth - 2; d >= 0; d -= 2 {
				ok = ok || explained[d]
			}
			if !ok && !isGroup {
				t.Errorf("values.yaml:%d: no sentence says what %s does", n+1, m[2])
			}
			comment = ""
		}
	}
}

func TestTheSchemaKnowsTheValuesAndNoOthers(t *testing.T) {
	var schema struct {
		AdditionalProperties bool           `json:"additionalProperties"`
		Properties           map[string]any `json:"properties"`
		Required             []string       `json:"required"`
	}
	if err := json.Unmarshal([]byte(read(t, chart, "values.schema.json")["values.schema.json"]), &schema); err != nil {
		t.Fatal(err)
	}
	var values map[string]any
	if err := yaml.UnmarshalStrict([]byte(read(t, chart, "values.yaml")["values.yaml"]), &values); err != nil {
		t.Fatal(err)
	}
	for name := range schema.Properties {
		if _, ok := values[name]; !ok && name != "global" && name != "enabled" { // which are for a chart around this one
			t.Errorf("%s has a schema, but no default", name)
		}
	}
	for name := range values {
		if slices.Contains(schema.Required, name) == slices.Contains(mayBeNull, name) {
			t.Errorf("%s may be left out by null in the schema, or in mayBeNull, and not in the other", name)
		}
	}
}

func TestEverythingSetsEveryValue(t *testing.T) {
	var values, set map[string]any
	if err := yaml.Unmarshal([]byte(read(t, chart, "values.yaml")["values.yaml"]), &values); err != nil {
		t.Fatal(err)
	}
	if err := yaml.UnmarshalStrict([]byte(read(t, "testdata", "everything.yaml")["everything.yaml"]), &set); err != nil {
		t.Fatal(err)
	}
	// Off elsewhere, or to be kept; or not with all that is here: see TestPodsOnTheNetworkOfTheirNodes.
	elsewhere := []string{"resourceQuota", "rbac", "podSecurityContext", "securityContext", "hostNetwork"}
	for name := range values {
		if _, ok := set[name]; !ok && !slices.Contains(elsewhere, name) {
			t.Errorf("testdata/everything.yaml does not set %s", name)
		}
	}
}
