//go:build !unix

package agent

import "os"

// isTaken always returns false, because this system has no whole-file locks
// that are released when their process ends.
func isTaken(*os.File) bool { return false }
