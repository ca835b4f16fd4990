import type { ButtonHTMLAttributes } from "react";

/** How a button looks. */
interface ButtonProps extends ButtonHTMLAttributes<HTMLButtonElement> {
  readonly look?: "primary" | "danger" | "plain" | undefined;
  readonly small?: boolean | undefined;
  readonly icon?: boolean | undefined;
}

/** A button. */
export function Button({ look, small, icon, className, ...rest }: ButtonProps) {
  const classes = ["button", look, small && "small", icon && "icon", className].filter(Boolean).join(" ");
  return <button type="button" className={classes} {...rest} />;
}
