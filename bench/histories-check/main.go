// Checks histories of operations on nodes for linearizability, each node separately, with porcupine.
//
// It reads operations as JSON lines from standard input, and writes one JSON line for each node.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/anishathalye/porcupine"
)

// Report is the result for one node.
type Report struct {
	Node       string `json:"node"`
	Operations int    `json:"operations"`
	// Open is the number of operations whose outcome is unknown.
	Open int `json:"open"`
	// Result is OK, ILLEGAL, or UNKNOWN if the check took too long.
	Result string `json:"result"`
	// Minimal is a short part of the history that has no explanation. Empty unless the result is ILLEGAL.
	Minimal []Operation `json:"minimal,omitempty"`
}

func main() {
	if err := run(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(in io.Reader, out io.Writer) error {
	histories, err := read(in)
	if err != nil {
		return err
	}
	nodes := make([]string, 0, len(histories))
	for node := range histories {
		nodes = append(nodes, node)
	}
	slices.SortFunc(nodes, strings.Compare)
	encoder := json.NewEncoder(out)
	for _, node := range nodes {
		if err := encoder.Encode(reportOf(node, histories[node])); err != nil {
			return err
		}
	}
	return nil
}

func read(in io.Reader) (map[string][]Operation, error) {
	histories := map[string][]Operation{}
	decoder := json.NewDecoder(bufio.NewReader(in))
	decoder.DisallowUnknownFields()
	for {
		var operation Operation
		if err := decoder.Decode(&operation); errors.Is(err, io.EOF) {
			return histories, nil
		} else if err != nil {
			return nil, fmt.Errorf("cannot read the history: %w", err)
		}
		histories[operation.Node] = append(histories[operation.Node], operation)
	}
}

func reportOf(node string, operations []Operation) Report {
	report := Report{Node: node, Operations: len(operations), Result: "OK"}
	for _, operation := range operations {
		if operation.ReturnUs == nil {
			report.Open++
		}
	}
	switch check(operations, []State{initialState}) {
	case porcupine.Illegal:
		report.Result = "ILLEGAL"
		report.Minimal = shrink(operations)
	case porcupine.Unknown:
		report.Result = "UNKNOWN"
	case porcupine.Ok:
	}
	return report
}
