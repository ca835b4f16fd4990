/** What grpc.health.v1 says about one service. */
export type ServiceStatus = "SERVING" | "NOT_SERVING";

/**
 * Which services of a process serve, for grpc.health.v1 on all of its ports. The empty name is the process as a whole.
 */
export class ServingStatus {
  readonly #statuses = new Map<string, ServiceStatus>([["", "SERVING"]]);
  readonly #listeners = new Set<() => void>();

  /** Note a service, or "" for the whole process, and tell the watchers. */
  set(service: string, status: ServiceStatus): void {
    if (this.#statuses.get(service) === status) return;
    this.#statuses.set(service, status);
    this.#notify();
  }

  /** Everything stops serving: the first thing at shutdown, so that balancers look elsewhere. */
  drain(): void {
    for (const service of this.#statuses.keys()) this.#statuses.set(service, "NOT_SERVING");
    this.#notify();
  }

  /** The status of a service; null when it is not here. */
  get(service: string): ServiceStatus | null {
    return this.#statuses.get(service) ?? null;
  }

  /** The services that are known, with their statuses. */
  entries(): readonly (readonly [string, ServiceStatus])[] {
    return [...this.#statuses];
  }

  /** Call a listener after each change. Returns an unsubscribe function. */
  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  #notify(): void {
    for (const listener of [...this.#listeners]) listener();
  }
}
