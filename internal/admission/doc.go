// Package admission judges AdmissionReviews: it reads the object, extracts a small input, asks the policy and answers.
// It trusts the API server's word for who asks and what will be stored, and nothing that the object says of itself.
package admission
