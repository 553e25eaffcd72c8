using System.Runtime.CompilerServices;

[assembly: InternalsVisibleTo("Tests")] // which compare the structs with those of C
