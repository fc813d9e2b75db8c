/** State of a form: its values, its unsaved changes, its submission, and the server's error. */

import { useEffect, useRef, useState } from "preact/hooks";
import { type ApiError, toApiError } from "./api.ts";
import { project } from "./session.ts";
import { readUnsaved, writeUnsaved } from "./unsaved-drafts.ts";

type NamesOf<Values, Kind> = {
  [Name in keyof Values]: Values[Name] extends Kind ? Name : never;
}[keyof Values] &
  string;

export interface FormState<Values extends object> {
  values: Values;
  isBusy: boolean;
  /** Message of the last submission, if it failed; for a field that shows every error. */
  readonly error: string | undefined;
  /** The same, unless a field shows it: read it after the fields. */
  readonly unplacedError: string | undefined;
  set: (changes: Partial<Values>) => void;
  /** Properties of a text field, which shows the server's error about it. */
  input: <Name extends NamesOf<Values, string>>(
    name: Name,
  ) => { value: string; onInput: (value: string) => void; error: string | undefined };
  /** Properties of a field with choices. */
  choice: <Name extends NamesOf<Values, string>>(
    name: Name,
  ) => { value: Values[Name] & string; onChange: (value: Values[Name] & string) => void };
  /** Properties of a checkbox. */
  toggle: <Name extends NamesOf<Values, boolean>>(
    name: Name,
  ) => { isOn: boolean; onChange: (isOn: boolean) => void };
  /** The server's error about a field. */
  errorOf: (field: string) => string | undefined;
  /** Sends the values unless a submission is in progress; false if it failed. */
  submit: () => Promise<boolean>;
  /** Runs other work of the form with the same error and progress. */
  run: (work: () => unknown) => Promise<boolean>;
}

/** @param send receives the current values; after an error, which is shown, they are preserved. */
export function useForm<Values extends object>(
  initial: Values | (() => Values),
  send: (values: Values) => unknown,
): FormState<Values> {
  const [values, setValues] = useState(initial);
  const [failure, setFailure] = useState<ApiError>();
  const [isBusy, setBusy] = useState(false);
  const running = useRef(false);
  let isPlaced = false;
  const set = (changes: Partial<Values>) => setValues((now) => ({ ...now, ...changes }));
  const getError = (field: string) => {
    if (failure?.attr !== field) return undefined;
    isPlaced = true;
    return failure.detail;
  };
  const run = async (work: () => unknown) => {
    if (running.current) return false;
    running.current = true;
    setBusy(true);
    setFailure(undefined);
    try {
      await work();
      return true;
    } catch (error) {
      setFailure(toApiError(error));
      return false;
    } finally {
      running.current = false;
      setBusy(false);
    }
  };
  return {
    values,
    isBusy,
    get error() {
      isPlaced = true;
      return failure?.detail;
    },
    get unplacedError() {
      return isPlaced ? undefined : failure?.detail;
    },
    set,
    input: (name) => ({
      value: values[name] as string,
      onInput: (value) => set({ [name]: value } as Partial<Values>),
      error: getError(name),
    }),
    choice: (name) => ({
      value: values[name] as Values[typeof name] & string,
      onChange: (value) => set({ [name]: value } as Partial<Values>),
    }),
    toggle: (name) => ({
      isOn: values[name] as boolean,
      onChange: (isOn) => set({ [name]: isOn } as Partial<Values>),
    }),
    errorOf: getError,
    submit: () => run(() => send(values)),
    run,
  };
}

export interface UnsavedFields {
  /** Value and setter of a field, as of `useState`; the value is the stored one until it is changed. */
  field: <Value>(name: string, stored: Value) => [value: Value, set: (value: Value) => void];
  /** Number of changed fields. */
  count: number;
  /** After saving or on Cancel; fields that changed since this render stay. */
  clear: () => void;
}

const haveSameKind = (one: unknown, other: unknown) =>
  typeof one === typeof other && Array.isArray(one) === Array.isArray(other);

/**
 * Fields whose unsaved changes outlive the page. Not for passwords, secret keys and files.
 * @param form its name, unique at its address
 */
export function useUnsavedFields(form: string): UnsavedFields {
  const key = `${form} ${project.value?.id} ${location.pathname}`;
  const read = () => readUnsaved<Record<string, unknown>>(key) ?? {};
  const write = (changes: Record<string, unknown>) =>
    writeUnsaved(key, Object.keys(changes).length > 0 ? changes : undefined);
  const changes = read();
  const without = (isDropped: (name: string, value: unknown) => boolean) =>
    write(Object.fromEntries(Object.entries(read()).filter(([name, value]) => !isDropped(name, value))));
  const storedMeanwhile: string[] = [];
  useEffect(() => {
    if (storedMeanwhile.length > 0) without((name) => storedMeanwhile.includes(name));
  });
  return {
    field: <Value>(name: string, stored: Value) => {
      const isStored = (value: unknown) => JSON.stringify(value) === JSON.stringify(stored);
      if (name in changes && isStored(changes[name])) storedMeanwhile.push(name);
      // JSON has no NaN, and a former version of the page may have kept something else.
      const value = haveSameKind(changes[name], stored) ? (changes[name] as Value) : stored;
      return [
        value,
        (next) => {
          if (isStored(next)) without((changed) => changed === name);
          else write({ ...read(), [name]: next });
        },
      ];
    },
    count: Object.keys(changes).length,
    clear: () => without((name, value) => value === changes[name]),
  };
}
