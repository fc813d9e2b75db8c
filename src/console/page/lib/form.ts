/** State of a form: its values, its submission, and the server's error. */

import { useRef, useState } from "preact/hooks";
import { type ApiError, toApiError } from "./api.ts";

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
