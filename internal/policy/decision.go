package policy

// Effect says what a finding asks for.
type Effect string

// Effects of findings.
const (
	EffectDeny  Effect = "deny"  // refuse the object
	EffectWarn  Effect = "warn"  // let it pass and tell its author
	EffectAudit Effect = "audit" // let it pass and record it
)

// Finding is one thing that a policy has to say about an input.
type Finding struct {
	// Code names the rule: PG001.
	Code string `json:"code"`
	// Effect is deny, warn or audit.
	Effect Effect `json:"effect"`
	// Field is the path of the input entry that the finding is about, as the entry itself gives it; it may be empty.
	Field string `json:"field,omitempty"`
	// Message replaces the message that is otherwise built from the rule's metadata and the entry.
	Message string `json:"message,omitempty"`
}

// Decision is the result of one evaluation.
type Decision struct {
	// Allowed is true only if the policy said so and no finding denies.
	Allowed  bool      `json:"allowed"`
	Findings []Finding `json:"findings"`
	// Untold are findings that deny and are not among Findings, since there were too many.
	Untold []Finding `json:"-"`
	// Revision is the revision of the policies that decided.
	Revision string `json:"revision"`
}

// Rule is what a module's METADATA says of a code.
type Rule struct {
	Code        string `json:"code"`
	Title       string `json:"title"`
	Description string `json:"description,omitempty"`
	Severity    string `json:"severity,omitempty"`
	Docs        string `json:"docs,omitempty"`
	Remedy      string `json:"remedy,omitempty"`
}
