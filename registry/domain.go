package registry

import (
	"regexp"
	"strings"
)

var (
	domainPattern = regexp.MustCompile(`^[A-Za-z0-9._-]{1,128}$`)
	grantPattern  = regexp.MustCompile(`^(\*|[A-Za-z0-9._-]{1,128}(\.\*)?)$`)
)

// ValidDomain reports whether d is a domain: 1 to 128 characters of
// [A-Za-z0-9._-]. Domains are case-sensitive.
func ValidDomain(d string) bool { return domainPattern.MatchString(d) }

// ValidPattern reports whether p is a domain, a domain followed by ".*", or "*".
func ValidPattern(p string) bool { return grantPattern.MatchString(p) }

// Covers reports whether a pattern covers a domain: "risk.*" covers "risk"
// and everything that starts with "risk.".
func Covers(pattern, domain string) bool {
	if pattern == "*" || pattern == domain {
		return true
	}
	base, below := strings.CutSuffix(pattern, ".*")
	return below && (domain == base || strings.HasPrefix(domain, base+"."))
}

// coverings lists every pattern that covers a domain, the one that counts
// most first: the domain itself, then "…*" from the longest to "*".
func coverings(domain string) []string {
	out := []string{domain, domain + ".*"}
	for at := strings.LastIndexByte(domain, '.'); at > 0; at = strings.LastIndexByte(domain[:at], '.') {
		out = append(out, domain[:at]+".*")
	}
	return append(out, "*")
}
