from docnmt.cli import main

raise SystemExit(main())
