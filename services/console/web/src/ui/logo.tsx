/** The logo: a list of names, some checked. */
export function Logo() {
  return (
    <svg width="20" height="20" viewBox="0 0 32 32" aria-hidden="true">
      <rect width="32" height="32" rx="7" fill="#3b5bdb" />
      <path d="M7 10h10M7 16h10M7 22h10" stroke="#fff" strokeWidth="2.6" strokeLinecap="round" />
      <path d="m20.5 10 2 2 3.5-4" stroke="#b2f2bb" strokeWidth="2.4" fill="none" strokeLinecap="round" />
      <circle cx="23.3" cy="16.4" r="1.9" fill="#b2f2bb" />
      <circle cx="23.3" cy="22.4" r="1.9" fill="none" stroke="#ffc9c9" strokeWidth="1.6" />
    </svg>
  );
}
