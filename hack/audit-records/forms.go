package main

// forms are texts of a certain form. Patterns are of the whole text.
var forms = map[string]struct{ name, pattern string }{
	"hash":    {"base64 of 32 bytes", `[A-Za-z0-9+/]{43}=`},
	"hex":     {"64 hexadecimal digits", `[0-9a-f]{64}`},
	"segment": {"file name of a segment", `audit-[0-9]{20}-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\.jsonl`},
	"code":    {"name or number", `([A-Z][A-Za-z]+|Code\([0-9]+\)|[1-5][0-9]{2})`},
}

// cut is what stands in a list in the place of what was left out.
const cut = `\[[0-9]+ entries cut\]`
