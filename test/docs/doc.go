// Package docs checks that README.md and docs/ speak of what there is: files, headings, metrics, flags, rules, parameters.
package docs
