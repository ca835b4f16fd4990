/** Something wrong with the configuration. */
export interface Problem {
  /**
   * Where it was set: "rollcall.yaml:12", "environment ROLLCALL_X" or "flag --x". Absent for what was not set anywhere.
   */
  readonly where?: string;
  /** The key that is concerned, as declared. Absent for an unknown one. */
  readonly path?: string;
  readonly message: string;
}

/** A problem on one line. */
export function formatProblem({ where, path, message }: Problem): string {
  return [where, path, message].filter((part) => part !== undefined).join(": ");
}

/** All problems, one a line. */
export function formatProblems(problems: readonly Problem[]): string {
  return problems.map(formatProblem).join("\n");
}
