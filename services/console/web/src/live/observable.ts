import { useSyncExternalStore } from "react";

/** A value that components can subscribe to. */
export class Observable<T> {
  #value: T;
  readonly #followers = new Set<() => void>();

  constructor(value: T) {
    this.#value = value;
  }

  get value(): T {
    return this.#value;
  }

  set(value: T): void {
    if (Object.is(value, this.#value)) return;
    this.#value = value;
    for (const follower of this.#followers) follower();
  }

  readonly subscribe = (follower: () => void): (() => void) => {
    this.#followers.add(follower);
    return () => this.#followers.delete(follower);
  };
}

/** Subscribe a component to a part of a value. `select` returns the same object while that part is the same. */
export function useSelected<T, P>(observable: Observable<T>, select: (value: T) => P): P {
  return useSyncExternalStore(observable.subscribe, () => select(observable.value));
}

/** Subscribe a component to a value. */
export function useObservable<T>(observable: Observable<T>): T {
  return useSyncExternalStore(observable.subscribe, () => observable.value);
}
