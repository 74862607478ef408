// Package floor holds the floor against the webhook: generated objects are judged by the API server's own evaluation of CEL and by package admission, and the floor must admit
// nothing that the webhook refuses. It is a module of its own, because the API server's code is no part of the product.
package floor
