package agent

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"net"
	"os"
	"slices"
	"strings"
)

// bootID is the id of this boot of the machine; one that lasts as long as this process where the kernel tells none.
func bootID() string {
	if text, err := os.ReadFile("/proc/sys/kernel/random/boot_id"); err == nil {
		return strings.TrimSpace(string(text))
	}
	return rand.Text()
}

// machineFingerprint is a text that two machines do not share although one is a copy of the other's disk.
func machineFingerprint() string {
	id, _ := os.ReadFile("/etc/machine-id") // Where there is none the addresses tell machines apart.
	parts := []string{}
	interfaces, _ := net.Interfaces()
	for _, one := range interfaces {
		isLasting := one.Flags&net.FlagLoopback == 0 && len(one.HardwareAddr) > 0
		if _, err := os.Stat("/sys/class/net/" + one.Name + "/device"); isLasting && err == nil {
			parts = append(parts, one.HardwareAddr.String())
		}
	}
	slices.Sort(parts)
	sum := sha256.Sum256([]byte(strings.TrimSpace(string(id)) + "\n" + strings.Join(parts, "\n")))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}
