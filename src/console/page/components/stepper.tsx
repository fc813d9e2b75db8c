/** The steps of a longer form: where the user is, and what follows. */

export interface Step {
  name: string;
  /** Page of the step, if it can be opened directly. */
  href?: string | undefined;
}

/** @param current index of the current step; the ones before it are done */
export function Stepper({
  label,
  steps,
  current,
}: {
  label: string;
  steps: readonly Step[];
  current: number;
}) {
  return (
    <ol class="stepper" aria-label={label}>
      {steps.map(({ name, href }, index) => (
        <li key={name} aria-current={index === current ? "step" : undefined}>
          <span class={index <= current ? "step-number done" : "step-number"} aria-hidden="true">
            {index + 1}
          </span>
          {href === undefined || index === current ? <span>{name}</span> : <a href={href}>{name}</a>}
        </li>
      ))}
    </ol>
  );
}
