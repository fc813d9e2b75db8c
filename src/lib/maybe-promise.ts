/** A value that is usually available at once: awaiting it would cost each request a tick. */
export type MaybePromise<Value> = Value | Promise<Value>;
