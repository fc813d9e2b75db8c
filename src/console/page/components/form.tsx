/** Forms that submit themselves and report the result: in a page, and in a dialog. */

import type { ComponentChildren } from "preact";
import { type FormState, type UnsavedFields, useForm } from "../lib/form.ts";
import { messages } from "../messages/index.ts";
import { Dialog } from "./dialog.tsx";
import { Button } from "./primitives.tsx";
import { toast } from "./toast.tsx";

function FormError({ message }: { message: string | undefined }) {
  return message === undefined ? null : (
    <p class="error" role="alert">
      {message}
    </p>
  );
}

/** A form of a page. Its fields keep their own values, preferably in `unsaved`. */
export function Form({
  children,
  onSend,
  unsaved,
  action = messages.settings.save,
  done = messages.settings.saved,
  disabledReason,
}: {
  children: ComponentChildren | ((getError: (field: string) => string | undefined) => ComponentChildren);
  /** Resolves with false if nothing was done. */
  onSend: () => Promise<unknown>;
  /** The fields, if their unsaved changes outlive the page. */
  unsaved?: UnsavedFields;
  action?: string;
  done?: string;
  disabledReason?: string | false | undefined;
}) {
  const form = useForm({}, async () => {
    if ((await onSend()) === false) return;
    unsaved?.clear();
    toast(done);
  });
  const fields = typeof children === "function" ? children(form.errorOf) : children;
  return (
    <form
      class="stack"
      onSubmit={(event) => {
        event.preventDefault();
        if (!disabledReason) void form.submit();
      }}
    >
      {fields}
      <FormError message={form.unplacedError} />
      <div class="row">
        <Button kind="main" type="submit" isDisabled={form.isBusy} disabledReason={disabledReason}>
          {action}
        </Button>
        {disabledReason && <span class="help">{disabledReason}</span>}
        {unsaved !== undefined && unsaved.count > 0 && (
          <>
            <span class="muted">{messages.flag.unsaved(unsaved.count)}</span>
            <Button kind="quiet" onClick={unsaved.clear}>
              {messages.flag.discard}
            </Button>
          </>
        )}
      </div>
    </form>
  );
}

/** A dialog with a form; `form` is from `useForm`. */
export function FormDialog<Values extends object>({
  title,
  form,
  action,
  onClose,
  children,
  size = "small",
  isDisabled = false,
  disabledReason,
  kind = "main",
  onCancel,
  actions,
}: {
  title: string;
  form: FormState<Values>;
  /** Label of the button that submits. */
  action: string;
  onClose: () => void;
  children: ComponentChildren;
  size?: "small" | "large";
  isDisabled?: boolean;
  disabledReason?: string | false | undefined;
  /** Of the button that submits. */
  kind?: "main" | "danger";
  /** Undefined: the dialog has no Cancel button. */
  onCancel?: () => void;
  /** Instead of the button that submits. */
  actions?: ComponentChildren;
}) {
  return (
    <Dialog
      title={title}
      size={size}
      onClose={onClose}
      onSubmit={() => {
        if (!isDisabled && !disabledReason) return form.submit();
      }}
      actions={
        <>
          {onCancel && <Button onClick={onCancel}>{messages.frame.cancel}</Button>}
          {actions || (
            <Button kind={kind} type="submit" isDisabled={isDisabled} disabledReason={disabledReason}>
              {action}
            </Button>
          )}
        </>
      }
    >
      {children}
      <FormError message={form.unplacedError} />
    </Dialog>
  );
}
