/** The status of a service, as in grpc.health.v1. */
export type ServiceStatus = "SERVING" | "NOT_SERVING";

/**
 * The status of each service of a process, for grpc.health.v1 on all ports of the process. The empty name stands for
 * the whole process.
 */
export class ServingStatus {
  readonly #statuses = new Map<string, ServiceStatus>([["", "SERVING"]]);
  readonly #listeners = new Set<() => void>();

  /** Set the status of a service, or of the whole process (""), and notify the watchers. */
  set(service: string, status: ServiceStatus): void {
    if (this.#statuses.get(service) === status) return;
    this.#statuses.set(service, status);
    this.#notify();
  }

  /**
   * Set every status to NOT_SERVING. This is the first step of a shutdown, so that load balancers choose another
   * process.
   */
  drain(): void {
    for (const service of this.#statuses.keys()) this.#statuses.set(service, "NOT_SERVING");
    this.#notify();
  }

  /** Get the status of a service; null if the service is unknown. */
  get(service: string): ServiceStatus | null {
    return this.#statuses.get(service) ?? null;
  }

  /** List the known services with their statuses. */
  entries(): readonly (readonly [string, ServiceStatus])[] {
    return [...this.#statuses];
  }

  /** Call a listener after each change to a status. Returns an unsubscribe function. */
  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  #notify(): void {
    for (const listener of [...this.#listeners]) listener();
  }
}
