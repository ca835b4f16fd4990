package agent

import "slices"

// mostAnnounced is the maximum number of authorities in an announcement.
const mostAnnounced = 16

// An announcedAuthority is one authority announced by the control plane. Times are milliseconds since 1970.
type announcedAuthority struct {
	Fingerprint string
	// IsRoot reports whether the certificate is self-signed. Intermediate certificates are not kept, because other clients
	// cannot use them without their root.
	IsRoot                  bool
	NotBeforeMs, NotAfterMs float64
	// IsVerifying reports whether the authority verifies the connection over which it was announced.
	IsVerifying bool
}

// decideAuthorities decides what an agent trusts after an announcement: "replace" the kept authorities with these
// fingerprints, keep the "same" ones, or "refuse" the announcement because of a problem. It never accepts authorities
// that would lock the agent out of the server that announces them.
func decideAuthorities(announced []announcedAuthority, kept []string, wallMs float64) (kind string, fingerprints []string, problem string) {
	if len(announced) > mostAnnounced {
		return "refuse", nil, "more than 16 authorities"
	}
	isVerified := false
	for _, it := range announced {
		if !it.IsRoot || it.NotAfterMs <= wallMs {
			continue
		}
		fingerprints = append(fingerprints, it.Fingerprint)
		// Keep an authority that is not valid yet, but do not count it as verifying.
		isVerified = isVerified || it.IsVerifying && it.NotBeforeMs <= wallMs
	}
	switch {
	case len(fingerprints) == 0:
		return "refuse", nil, "no root authority that is valid today"
	case !isVerified:
		return "refuse", nil, "no authority that verifies the server's own certificate"
	}
	fingerprints = sortedSet(fingerprints)
	if slices.Equal(fingerprints, sortedSet(kept)) {
		return "same", nil, ""
	}
	return "replace", fingerprints, ""
}

func sortedSet(texts []string) []string { return slices.Compact(slices.Sorted(slices.Values(texts))) }
